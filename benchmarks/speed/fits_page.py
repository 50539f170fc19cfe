"""From rows of `against` to a page: time of whole fits beside those of an earlier revision, and a picture."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

__all__ = ["write_page"]

_HEAD = """# How long a fit takes

Default fits of nine tenths of the rows by this checkout and by revision {revision}, in turn, one thread
each; both score the same tenth. `python -m benchmarks.speed fits --against {revision} --data FOLDER
--publish results` makes the rows (`rows.csv`) and this page. CPU seconds depend on the machine and on what
else it does; only the *ratio* does not. Of real tables half of the rows is fitted, as in the
[replication benchmark](../replication/summary.md), but all cells of PBMC's counts.
*Held out*: score per row of this checkout, and in brackets of the other one, as with factors and links. A fit
keeps 95 % of what the best one gains (`gain_kept=0.95`), so its score may be a little less; beside it that of
the most predictive fit (`gain_kept=1.0`, with `--predictive`). FA and NMF are
scikit-learn's, with as many factors as the fit found; *MB* is the largest memory of the process.
A dash: not run.

![CPU seconds of whole fits](fits.png)

"""


def write_page(summary: pd.DataFrame, rows: pd.DataFrame, folder: Path, revision: str) -> None:
    """``rows.csv``, ``summary.md`` and ``fits.png``.

    Parameters
    ----------
    summary : DataFrame
        Medians of each table, as `against.summary` has them.
    rows : DataFrame
    folder : Path
    revision : str
        The other one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows.to_csv(folder / "rows.csv", index=False)
    page = _HEAD.format(revision=revision)
    names = ["table", "CPU s", "other", "ratio", "held out", "`gain_kept=1.0`", "factors", "links"]
    names += ["FA s", "NMF s", "MB"]
    page += "| " + " | ".join(names) + " |\n" + "|---" * len(names) + "|\n"
    for row in summary.to_dict("records"):
        cells = [
            row["table"],
            f"{row['CPU s']:.1f}",
            _shown(row["CPU s, other"], ".1f"),
            f"**{row['ratio']:.1f}**" if row["ratio"] == row["ratio"] else "–",
            f"{row['held out']:.2f} ({_shown(row['held out, other'], '.2f')})",
            _shown(row["held out, gain_kept=1.0"], ".2f"),
            f"{row['factors']:.0f} ({_shown(row['factors, other'], '.0f')})",
            f"{row['links']:.0%} ({_shown(row['links, other'], '.0%')})",
            f"{row['FA s']:.2f}",
            f"{row['NMF s']:.2f}",
            _shown(row["MB"], ",.0f"),
        ]
        page += "| " + " | ".join(cells) + " |\n"
    (folder / "summary.md").write_text(page, encoding="utf-8")
    _plot(summary, folder / "fits.png")


def _shown(value: float, form: str) -> str:
    """A figure, or a dash where there is none."""
    return "–" if value != value else format(value, form)


def _plot(summary: pd.DataFrame, path: Path) -> None:
    """CPU seconds of each table by each, on a logarithmic scale."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7.0, 0.5 + 0.42 * len(summary)))
    names = {"CPU s, other": "before", "CPU s": "now", "NMF s": "NMF", "FA s": "factor analysis"}
    styles = {"CPU s, other": "C7o", "CPU s": "k*", "NMF s": "C1.", "FA s": "C0."}
    places = range(len(summary))[::-1]
    for place, (now, before) in zip(places, summary[["CPU s", "CPU s, other"]].to_numpy(), strict=True):
        axis.plot([now, before], [place, place], color="0.8", lw=2, zorder=0)
    for column, name in names.items():
        axis.plot(summary[column], places, styles[column], ms=10 if column == "CPU s" else 7, label=name)
    axis.set_xscale("log")
    axis.set_yticks(list(places), list(summary["table"]))
    axis.set_xlabel("CPU seconds of a fit")
    axis.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
