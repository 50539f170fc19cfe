"""``sparsevae demo``: data with known factors, a fit, and how far the fit found them."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from sklearn.decomposition import FactorAnalysis

from sparsevae.cli.console import collect_warnings, is_watched, one_sentence_errors, print_json, say
from sparsevae.cli.options import PICTURES, JsonOption
from sparsevae.datasets import Dataset, make_sparse_factors
from sparsevae.estimators import SparseVAE
from sparsevae.exceptions import ParameterError
from sparsevae.metrics import dci, heldout_mse, match_supports, support_f1
from sparsevae.persistence import check_writable, replacing

__all__ = ["demo"]

_N_FACTORS = 5
_WIDTH = 88  # of the text printed


@one_sentence_errors
def demo(
    correlation: Annotated[
        float, typer.Option(help="Correlation of the two factors, above -1 and below 1.")
    ] = 0.6,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the data and of the fit.")] = 0,
    rows: Annotated[int, typer.Option(min=20, help="Rows to fit to; as many again are held out.")] = 500,
    max_epochs: Annotated[
        int | None, typer.Option(min=1, help="Epochs of the fit. [default: enough]")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw both masks to a PNG, SVG or PDF file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Generate the paper's synthetic data, fit it, and show the true and the recovered mask side by side.

    The data are those of section 2.2 of Moran, Sridhar, Wang and Blei: seven features of two correlated
    factors, some linear, one a square, one a sine, one a product. The result is printed as it is. It takes
    about half a minute.
    """
    if not -1 < correlation < 1:
        raise ParameterError(f"Expected --correlation above -1 and below 1; got {correlation:g}.")
    if plot is not None:
        if plot.suffix.lower() not in PICTURES:
            raise ParameterError(f"Expected --plot to end in {', '.join(PICTURES)}; got {plot.name}.")
        check_writable(plot)
    data = make_sparse_factors(2 * rows, correlation=correlation, random_state=seed)
    true_mask, curves = np.asarray(data.mask), [str(curve) for curve in data.curves or ()]
    train, test = data.take(range(rows)), data.take(range(rows, 2 * rows))
    say(f"Fitting {rows} rows of {data.n_features} features, with up to {_N_FACTORS} factors ...")
    model = SparseVAE(_N_FACTORS, max_epochs=max_epochs, random_state=seed, verbose=int(is_watched()))
    started = time.perf_counter()
    with collect_warnings(), _one_thread():
        model.fit(train.X)
    comparison = _Comparison.of(model, train, test, time.perf_counter() - started)
    if plot is not None:
        _draw_masks(true_mask, comparison.mask, curves, plot)
        say(f"Drew both masks to {plot}.")
    if as_json:
        settings = {"correlation": correlation, "seed": seed, "rows": rows, "n_factors": _N_FACTORS}
        print_json({**settings, "true_mask": true_mask, **asdict(comparison)})
    else:
        print(_masks_in_words(list(data.feature_names), curves, true_mask, comparison))
        print(_scores_in_words(comparison))
        print(_explanation(rows, comparison))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Seven features do not feed two threads: they would wait for each other, long on a busy machine."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


@dataclass(frozen=True)
class _Comparison:
    """What the fit found, and what a linear factor analysis with as many factors does.

    The mask's columns are matched to the true factors by support; a true factor without a match has a column
    of zeros, and factors without a true one come last.
    """

    mask: np.ndarray
    wrong: np.ndarray
    n_active: int
    support_f1: float
    scores: dict[str, dict[str, float]]
    seconds: float

    @classmethod
    def of(cls, model: SparseVAE, train: Dataset, test: Dataset, seconds: float) -> _Comparison:
        n_active = len(model.active_factors_)
        codes = model.transform(test.X)
        scores = {"SparseVAE": _scores(codes, model.inverse_transform(codes), test)}
        linear = FactorAnalysis(n_components=max(1, n_active), random_state=0).fit(train.X)
        codes = linear.transform(test.X)
        scores["FactorAnalysis"] = _scores(codes, codes @ linear.components_ + linear.mean_, test)
        true_mask = np.asarray(train.mask)
        mask = _match_columns(model.mask_, true_mask)
        wrong = (mask != 0) != np.pad(true_mask != 0, ((0, 0), (0, mask.shape[1] - true_mask.shape[1])))
        return cls(mask, wrong, n_active, support_f1(model.mask_, true_mask), scores, round(seconds, 1))


def _scores(codes: np.ndarray, reconstruction: np.ndarray, test: Dataset) -> dict[str, float]:
    disentanglement = dci(codes, test.factors)
    return {
        "disentanglement": disentanglement.disentanglement,
        "completeness": disentanglement.completeness,
        "heldout_mse": float(heldout_mse(test.X, reconstruction)),
    }


def _match_columns(mask: np.ndarray, true_mask: np.ndarray) -> np.ndarray:
    matched = {true: found for found, true in match_supports(mask, true_mask)}
    extra = [k for k in np.flatnonzero(mask.any(0)) if k not in matched.values()]
    padded = np.column_stack([mask, np.zeros(len(mask))])  # its last column stands for no match
    return padded[:, [*(matched.get(true, -1) for true in range(true_mask.shape[1])), *extra]]


def _masks_in_words(features: list[str], curves: list[str], true_mask: np.ndarray, found: _Comparison) -> str:
    n_true, n_shown = true_mask.shape[1], found.mask.shape[1]
    width = max(len(curve) for curve in curves)
    factors = [f"z{k}" for k in range(n_true)]
    left, right = _cells(factors, 4), _cells([*factors, *["extra"] * (n_shown - n_true)], 7)
    lines = [
        f"{'':{width + 11}}{'true mask':<{len(left) + 4}}recovered mask",
        f"{'feature':<9}{'made as':<{width}}{left}    {right}",
    ]
    for j, (name, curve) in enumerate(zip(features, curves, strict=True)):
        left = _cells(["1" if entry else "." for entry in true_mask[j]], 4)
        right = _cells([f"{entry:.2f}" if entry else "." for entry in found.mask[j]], 7)
        remark = "   <- differs" if found.wrong[j].any() else ""
        lines.append(f"{name:<9}{curve:<{width}}{left}    {right}{remark}")
    return "\n".join(lines) + "\n"


def _cells(texts: list[str], width: int) -> str:
    return "".join(text.rjust(width) for text in texts)


def _scores_in_words(found: _Comparison) -> str:
    lines = [f"{'':24}{'factors':>8}{'DCI-D':>8}{'DCI-C':>8}{'held-out MSE':>15}"]
    labels = {"SparseVAE": "SparseVAE", "FactorAnalysis": "linear factor analysis"}
    n_factors = {"SparseVAE": found.n_active, "FactorAnalysis": max(1, found.n_active)}
    for method, score in found.scores.items():
        quality = f"{score['disentanglement']:>8.2f}{score['completeness']:>8.2f}"
        lines.append(f"{labels[method]:<24}{n_factors[method]:>8}{quality}{score['heldout_mse']:>15.2f}")
    return "\n".join(lines) + "\n"


def _explanation(rows: int, found: _Comparison) -> str:
    n_wrong = int(found.wrong.sum())
    agreement = "in every entry"
    if n_wrong:
        agreement = f"except in {n_wrong} {'entry' if n_wrong == 1 else 'entries'}"
    count = f"{found.n_active} factor{'s' if found.n_active > 1 else ''}" if found.n_active else "no factor"
    sentences = (
        "On the left is the truth, which feature depends on which hidden factor; on the right is what "
        f"SparseVAE found in {rows} rows, not knowing how many factors there are: {count}, agreeing with the "
        f"truth {agreement} (a dot is an exact zero; numbers compare within a row only).",
        "DCI is 1 where each factor found stands for one true factor and the other way round, and the "
        f"held-out MSE is the error of reconstruction on {rows} more rows; linear factor analysis, with "
        "as many factors, is for comparison.",
    )
    return "\n".join(textwrap.fill(sentence, _WIDTH) for sentence in sentences)


def _draw_masks(true_mask: np.ndarray, mask: np.ndarray, curves: list[str], path: Path) -> None:
    """Draw two masks with a row per feature; exact zeros stay white."""
    # `plotting.plot_mask` draws one fitted model, in its order; a true mask has none to compare with.
    from matplotlib.figure import Figure

    n_features = len(mask)
    # A Figure without pyplot needs no window system and leaves no state behind.
    figure = Figure(figsize=(6.0, 1.0 + 0.4 * n_features), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, title, values in ((left, "true mask", true_mask), (right, "recovered mask", mask)):
        shown = np.ma.masked_equal(np.abs(values), 0)
        axes.imshow(
            shown, cmap="viridis_r", vmin=0, vmax=max(1.0, float(np.abs(values).max())), aspect="auto"
        )
        axes.set_title(title)
        axes.set_xticks(range(values.shape[1]), [f"factor {k + 1}" for k in range(values.shape[1])])
        axes.set_xticks(np.arange(values.shape[1] + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(n_features + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="0.85")
        axes.tick_params(which="both", length=0)
    left.set_yticks(range(n_features), curves)
    with replacing(path) as partial:
        figure.savefig(partial, dpi=150)
