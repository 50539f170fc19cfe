"""Write factor cards of the ability tests: 301 pupils, nine tests, from a fit to a page.

Usage: python examples/factor_cards.py [FILE.html]

It takes about a minute. The page needs no other file; JSON and CSV with the same content come beside it.
"""

from __future__ import annotations

import sys

import pandas as pd

from sparsevae import SparseVAE
from sparsevae.datasets import load_ability_tests
from sparsevae.report import build_content, write_report


def main(path: str = "ability.html", **parameters: object) -> None:
    data = load_ability_tests()
    table = pd.DataFrame(data.X, columns=data.feature_names)
    model = SparseVAE(n_factors=5, random_state=0, **parameters).fit(table)
    pupils = [f"pupil {i + 1}" for i in range(len(table))]
    evidence = model.evidence(table, samples=pupils, table_name="ability tests")
    content = build_content(model, evidence=evidence, title="Ability tests of 301 pupils")
    print(*content["summary"], sep="\n")
    files = write_report(content, path)
    print("wrote", ", ".join(file.name for file in files.values()))


if __name__ == "__main__":
    main(*sys.argv[1:2])
