"""Whether another seed shows the same factors: fits of the same rows with five seeds.

    python -m benchmarks.replication.seeds --data FOLDER [--only TABLE,...]

The rows are the first half of the first split of the replication benchmark; each seed's factors are compared
with those of seed 0 on all rows of the table.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from benchmarks.replication.methods import sparse_vae
from benchmarks.replication.tables import TABLES
from sparsevae.metrics.replication import compare_factors, halves

_SEEDS = 5


def main() -> None:
    """Parse the arguments, fit what is missing, print the means."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("bench-results") / "seeds.csv")
    parser.add_argument("--only", default=",".join(TABLES), help="tables, with commas between them")
    arguments = parser.parse_args()
    rows = pd.read_csv(arguments.out) if arguments.out.exists() else pd.DataFrame(columns=["table", "seed"])
    for name in arguments.only.split(","):
        if name in set(rows["table"]):
            continue
        table = TABLES[name]
        X = table.load(arguments.data)
        half = halves(len(X), 0)[0]
        fits = [
            sparse_vae(X[half], X, table.likelihood, table.n_factors, seed)
            for seed in tqdm(range(_SEEDS), desc=name, unit="fit")
        ]
        found = [
            {"table": name, "seed": seed, **compare_factors(fits[0], fits[seed])} for seed in range(1, _SEEDS)
        ]
        rows = pd.concat([rows, pd.DataFrame(found)], ignore_index=True)
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        rows.to_csv(arguments.out, index=False)
    means = rows.groupby("table", sort=False)[["factors_a", "factors_b", "back", "match", "overlap"]].mean()
    print(means.round(3).to_string())


if __name__ == "__main__":
    main()
