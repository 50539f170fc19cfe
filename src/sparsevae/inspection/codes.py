"""Codes of rows: where the encoder puts them, a few Newton steps from there, and each row found once."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from sparsevae.annotations.missing import has_missing
from sparsevae.decoder import MaskedDecoder
from sparsevae.inspection.outputs import Outputs
from sparsevae.modules import Batch, LatentModule
from sparsevae.training import RowSource
from sparsevae.validation import row_totals

__all__ = [
    "Codes",
    "block_size",
    "fixed_draws",
    "in_blocks",
    "map_rows",
    "newton_steps",
    "posterior",
    "row_bounds",
    "spread_rows",
]

_STEPS = 2  # Newton steps; a third changes little
_LENGTHS = (1.0, 0.4)  # of a step; a row takes the better one, or none
_DEVIATIONS = (0.02, 1.0)  # of a factor, between which differences are taken
_SLOPES_AT_ONCE = 1 << 23
_DRAWS = 8
_CELLS_AT_ONCE = 1 << 20
_ROWS_AT_ONCE = (16, 512)


class Codes:
    """Posteriors of the rows of a table under a fitted module, each found once, when it is first asked for.

    Parameters
    ----------
    module : LatentModule
        Fitted, without replicates, on the CPU.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Checked, in the user's units; NaN for what is missing.
    weight : ndarray of shape (n_samples,), optional
        How often each row counts.
    """

    def __init__(
        self, module: LatentModule, X: np.ndarray | sparse.csr_matrix, weight: np.ndarray | None = None
    ) -> None:
        self.module, self.X, self.weight = module, X, weight
        self._moments = np.zeros((X.shape[0], 2 * module.n_factors), dtype=np.float32)
        self._known = np.zeros(X.shape[0], dtype=bool)

    def moments(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Mean and log variance of rows (all by default), next to each other: (n_rows, 2 n_factors)."""
        wanted = np.arange(len(self._known)) if rows is None else rows
        missing = np.unique(wanted[~self._known[wanted]])
        if len(missing):
            X = self.X if len(missing) == len(self._known) else self.X[missing]
            found = map_rows(self.module, X, lambda module, batch: torch.cat(posterior(module, batch), -1))
            self._moments[missing], self._known[missing] = found, True
        return self._moments if rows is None else self._moments[wanted]

    def means(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Posterior means of the factors: (n_rows, n_factors); zero, the prior's, for rows without counts."""
        Z = self.moments(rows)[:, : self.module.n_factors].copy()
        if self.module.observation.count_columns.all():
            Z[row_totals(self.X if rows is None else self.X[rows]) == 0] = 0.0
        return Z

    def batch(self, rows: np.ndarray) -> Batch:
        """The rows themselves, as modules take them."""
        weight = None if self.weight is None else self.weight[rows]
        source = RowSource(self.X[rows], self.module.observation, weight=weight)
        return source.batch(torch.arange(len(rows)))


def posterior(module: LatentModule, batch: Batch) -> tuple[Tensor, Tensor]:
    """Mean and log variance of q(z | x).

    An encoder that does without some inputs in training has many of them (see `FitData.input_dropout`), and
    is less sure of new rows than of those it has seen: what it says is a start for `newton_steps`, and so it
    is for rows with missing entries, of which each has its own pattern. Elsewhere it is the answer.
    """
    mean, log_variance = module.encode(batch)
    if not module.gaussian_posterior:
        return mean, log_variance
    if not module.config.input_dropout:
        if batch.observed is None or bool(batch.observed.all()):
            return mean, log_variance
        holed = torch.nonzero(~batch.observed.all(-1)).ravel()
        some = _improved(module, batch.rows(holed), mean[holed], log_variance[holed])
        return mean.index_copy(0, holed, some[0]), log_variance.index_copy(0, holed, some[1])
    return _improved(module, batch, mean, log_variance)


def _improved(
    module: LatentModule, batch: Batch, mean: Tensor, log_variance: Tensor
) -> tuple[Tensor, Tensor]:
    n_active = max(1, int(module.active().sum()))
    size = max(1, _SLOPES_AT_ONCE // (n_active * module.n_features))
    parts = [
        newton_steps(module, *part, _STEPS)
        for part in zip(batch.split(size), mean.split(size), log_variance.split(size), strict=True)
    ]
    means, log_variances = zip(*parts, strict=True)
    return torch.cat(means), torch.cat(log_variances)


def row_bounds(
    module: LatentModule, X: np.ndarray | sparse.csr_matrix, draws: Tensor, moments: np.ndarray
) -> np.ndarray:
    """ELBO of each row in the units of the table, given `Codes.moments`: (n_samples,)."""

    def bound(module: LatentModule, batch: Batch, known: Tensor) -> Tensor:
        mean, log_variance = known.chunk(2, -1)
        return module.bound(batch, draws, (mean, log_variance))

    values = map_rows(module, X, bound, moments).astype(np.float64)
    return values + _log_jacobians(module, X)


def _log_jacobians(module: LatentModule, X: np.ndarray | sparse.csr_matrix) -> np.ndarray | float:
    """What the change of units adds to the log density of the rows: one number where nothing is missing."""
    if not has_missing(X):
        return float(module.observation.log_jacobian())
    per_feature = module.observation.log_jacobians()
    if not sparse.issparse(X):
        return np.asarray((~np.isnan(X)) @ per_feature)
    holes = X.tocoo()  # type: ignore[union-attr]
    where = np.isnan(holes.data)
    lost = np.bincount(holes.row[where], per_feature[holes.col[where]], minlength=X.shape[0])
    return per_feature.sum() - lost


@torch.no_grad()
def newton_steps(
    module: LatentModule, batch: Batch, mean: Tensor, log_variance: Tensor, n_steps: int
) -> tuple[Tensor, Tensor]:
    r"""Improve a diagonal Gaussian posterior by Gauss-Newton steps, each row by itself.

    .. math:: P = \Sigma_z^{-1} + J^\top I J, \qquad
        \mu \leftarrow \mu + P^{-1} (J^\top s - \Sigma_z^{-1} \mu), \qquad \sigma_k^2 \leftarrow 1 / P_{kk}

    J has the slopes of the outputs on the factors, over one standard deviation of the posterior; s is the
    slope of the log likelihood on the outputs, I its Fisher information. :math:`1 / P_{kk}` are the variances
    of the diagonal Gaussian nearest to :math:`N(\mu, P^{-1})`. Of a full step, a short one and none, a row
    takes what bounds its log p(x) best.

    Parameters
    ----------
    module : LatentModule
        Fitted, without replicates.
    batch : Batch
    mean, log_variance : Tensor of shape (n_samples, n_factors)
        Where to begin.
    n_steps : int

    Returns
    -------
    mean, log_variance : Tensor of shape (n_samples, n_factors)
    """
    active = torch.nonzero(module.active()).ravel()
    if not len(active):
        return mean, log_variance
    prior = torch.linalg.inv(module.prior_covariance()[active][:, active])
    pair = _opposite_draws(module.n_factors).to(batch.x)
    best = module.bound(batch, pair, (mean, log_variance))
    for _ in range(n_steps):
        slopes, score, information = _expansion(module, batch, mean, torch.exp(0.5 * log_variance))
        precision = prior + (slopes * information.unsqueeze(-2)) @ slopes.mT
        gradient = (slopes @ score.unsqueeze(-1)).squeeze(-1) - mean[:, active] @ prior
        step = torch.linalg.solve(precision, gradient)
        found = log_variance.index_copy(1, active, -precision.diagonal(dim1=-2, dim2=-1).log())
        start = mean
        for length in _LENGTHS:
            moved = start.index_add(1, active, step, alpha=length)
            bound = module.bound(batch, pair, (moved, found))
            better = bound > best
            best = torch.where(better, bound, best)
            mean = torch.where(better.unsqueeze(-1), moved, mean)
            log_variance = torch.where(better.unsqueeze(-1), found, log_variance)
    return mean, log_variance


def _expansion(
    module: LatentModule, batch: Batch, mean: Tensor, deviation: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Slopes of the outputs (sample × active factor × feature); score and information of each output."""
    outputs = Outputs(module, mean)
    steps = deviation.clamp(*_DEVIATIONS)
    slopes = torch.stack(
        [
            (outputs.changed(k, mean[:, k] + steps[:, k]) - outputs.given) / steps[:, k, None]
            for k in outputs.active
        ],
        1,
    )
    observation, total = module.observation, batch.total
    likelihood, parameters = observation.likelihood, module.nuisance.values()
    information = likelihood.information_at(outputs.given, parameters, size=batch.size, total=total)
    if total is not None:
        expected = likelihood.expectation(outputs.given, parameters, size=batch.size, total=total)
        # The probabilities of a multinomial sum to one: what raises all outputs alike changes nothing.
        columns = torch.as_tensor(np.flatnonzero(observation.total_columns), device=batch.x.device)
        weights = expected[:, columns] / total.clamp_min(1e-12).unsqueeze(-1)
        if batch.observed is not None:  # words that are not observed have left the softmax
            weights = weights * batch.observed[:, columns]
            weights = weights / weights.sum(-1, keepdim=True).clamp_min(1e-12)
            information = information.clone()
            information[:, columns] = weights * total.unsqueeze(-1)
        common = slopes[..., columns] @ weights.unsqueeze(-1)
        slopes[..., columns] = slopes[..., columns] - common
    information = information.expand_as(outputs.given)
    if batch.observed is not None:
        information = torch.where(batch.observed, information, 0.0)
    return slopes, _score(module, batch, outputs.given), information


def _score(module: LatentModule, batch: Batch, output: Tensor) -> Tensor:
    # The caller may be in inference mode, whose tensors cannot take part in a gradient: copies can.
    with torch.inference_mode(False), torch.enable_grad():
        output = output.clone().requires_grad_()
        (score,) = torch.autograd.grad(module.log_likelihood(batch.copied(), output).sum(), output)
    return score


def _opposite_draws(n_factors: int) -> Tensor:
    """Two draws of opposite sign, one standard deviation away in every factor."""
    signs = torch.randint(0, 2, (n_factors,), generator=torch.Generator().manual_seed(0)) * 2 - 1
    return torch.stack([signs, -signs])


def map_rows(
    module: LatentModule,
    X: np.ndarray | sparse.csr_matrix,
    function: Callable[..., Tensor],
    *known: np.ndarray,
) -> np.ndarray:
    """Apply a function of the module and some rows to all rows of a table.

    Parameters
    ----------
    module : LatentModule
        Without replicates.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    function : callable
        Gets the module in float64, a batch of rows, and the same rows of each ``known`` array in float64;
        returns a tensor with a row for each.
    *known : ndarray of shape (n_samples, ...)
        What is known of the rows, as their codes.

    Returns
    -------
    ndarray of shape (n_samples, ...), in float32

    Notes
    -----
    Matrix products round by the shape of the matrix and by the place of a row in it. Blocks of one size take
    care of the first; float64, rounded to float32 at the end, of the second.
    """
    exact = copy.deepcopy(module).double()
    for part in exact.modules():
        if isinstance(part, MaskedDecoder):
            part.precision = "float32"  # no rounding to bfloat16 on the way
    source = RowSource(X, exact.observation)
    tensors = [torch.as_tensor(values, dtype=torch.float64) for values in known]

    def of_rows(rows: Tensor) -> Tensor:
        return function(exact, source.batch(rows), *(values[rows] for values in tensors))

    with torch.inference_mode():
        return in_blocks(of_rows, X.shape[0], block_size(module)).float().numpy()


def in_blocks(function: Callable[[Tensor], Tensor], n_rows: int, size: int) -> Tensor:
    """Apply a function of row positions to blocks of one size, the last filled up with its last row."""
    results = []
    for rows in torch.arange(n_rows).split(size):
        full = torch.cat([rows, rows[-1:].expand(size - len(rows))])
        results.append(function(full)[: len(rows)])
    return torch.cat(results)


def block_size(module: LatentModule) -> int:
    """Rows in one pass through the network: a property of the model, not of the table."""
    return int(np.clip(_CELLS_AT_ONCE // module.n_features, *_ROWS_AT_ONCE))


def fixed_draws(n_noise: int) -> Tensor:
    """Standard normal draws in pairs of opposite sign, with second moments of one: (n_draws, n_noise).

    The parts of an integrand that are linear, or quadratic in one factor, are then exact.
    """
    generator = torch.Generator().manual_seed(0)
    half = torch.randn(_DRAWS // 2, n_noise, generator=generator, dtype=torch.float64)
    half = half / half.square().mean(0).sqrt()
    return torch.cat([half, -half])


def spread_rows(n_rows: int, most: int) -> np.ndarray:
    """Positions of at most so many rows, evenly over a table: the same ones every time."""
    return np.linspace(0, n_rows - 1, min(n_rows, most)).round().astype(int)
