"""What a fitted module says of cells that it has not seen: expectations, draws and their density."""

from __future__ import annotations

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from sparsevae.inspection.codes import Codes, fixed_draws
from sparsevae.modules import Batch, LatentModule
from sparsevae.summaries import dense_table

__all__ = ["draw_cells", "expect_cells", "hidden_log_density", "hide_cells"]


def expect_cells(codes: Codes) -> np.ndarray:
    """Expected value of each cell given what is observed of its row, in the table's units.

    Averaged over the posterior of the factors; of counts, for rows of the size seen; of categories without
    an order, the most probable one at the posterior mean.

    Parameters
    ----------
    codes : Codes

    Returns
    -------
    ndarray of shape (n_samples, n_features)
    """
    draws = fixed_draws(codes.module.n_noise)

    def expected(module: LatentModule, batch: Batch, known: Tensor) -> Tensor:
        mean, log_variance = known.chunk(2, -1)
        likelihood, parameters = module.observation.likelihood, module.nuisance.values()

        def rows(output: Tensor) -> dict[str, Tensor | None]:
            return {"size": batch.size, "total": _whole_total(module, batch, output)}

        drawn = (module.draw_posterior(batch, (mean, log_variance), draw) for draw in draws)
        outputs = [module.shifted(batch, module.decode(z)) for z in drawn]
        means = [likelihood.expectation(output, parameters, **rows(output)) for output in outputs]
        filled = torch.stack(means).mean(0)
        ordered = module.observation.ordered_columns
        if not ordered.all():
            output = module.shifted(batch, module.decode(mean))
            category = likelihood.fill(output, parameters, **rows(output))
            filled = torch.where(torch.as_tensor(ordered), filled, category)
        return module.observation.to_user_units(filled)

    return codes.map(expected, codes.moments()).astype(np.float64)


@torch.no_grad()
def draw_cells(codes: Codes, n_draws: int, generator: torch.Generator) -> np.ndarray:
    """Draws of all cells given what is observed of their rows: (n_draws, n_samples, n_features).

    Each draw takes factors from the posterior of a row, and then the row's cells given the factors.
    """
    module = codes.module
    batch = codes.batch(np.arange(codes.X.shape[0]))
    mean, log_variance = torch.as_tensor(codes.moments()).chunk(2, -1)
    result = []
    for _ in range(n_draws):
        noise = torch.randn(len(mean), module.n_noise, generator=generator)
        z = module.draw_posterior(batch, (mean, log_variance), noise)
        output = module.shifted(batch, module.decode(z))
        total = _whole_total(module, batch, output)
        drawn = module.observation.likelihood.sample(
            output,
            module.nuisance.values(),
            size=batch.size,
            total=None if total is None else total.round(),
            generator=generator,
        )
        result.append(module.observation.to_user_units(drawn).double().numpy())
    return np.stack(result)


def hide_cells(
    X: np.ndarray | sparse.csr_matrix,
    fraction: float,
    random_state: np.random.RandomState,
    n_columns: int,
) -> tuple[np.ndarray, np.ndarray]:
    """A dense copy of a table with further cells missing, and which cells these are.

    At least one observed cell of a row stays; cells of the first ``n_columns`` columns may be hidden.
    """
    table = dense_table(X)
    there = ~np.isnan(table) & (np.arange(table.shape[1]) < n_columns)
    chance = np.where(there, random_state.uniform(size=table.shape), np.inf)
    hidden = (chance < fraction) & there
    alone = ~(there & ~hidden).any(1) & hidden.any(1)
    hidden[alone, np.where(hidden, chance, -np.inf).argmax(1)[alone]] = False
    return np.where(hidden, np.asarray(np.nan, table.dtype), table), hidden


def hidden_log_density(codes: Codes, X: np.ndarray | sparse.csr_matrix, hidden: np.ndarray) -> np.ndarray:
    r"""Log density of the hidden cells of each row given the others, in the table's units: (n_samples,).

    .. math:: \log \int p(x_\text{hidden} \mid z)\, q(z \mid x_\text{seen})\, dz

    Parameters
    ----------
    codes : Codes
        Of the table without the hidden cells.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        The table with them.
    hidden : boolean ndarray of shape (n_samples, n_features)
    """
    draws = fixed_draws(codes.module.n_noise)
    known = np.concatenate([codes.moments(), hidden], axis=1)
    truth = np.where(hidden, dense_table(X), 0.0)
    n_factors, n_features = codes.module.n_factors, codes.module.n_features

    def density(module: LatentModule, batch: Batch, known: Tensor, values: Tensor) -> Tensor:
        mean, log_variance, there = known.split([n_factors, n_factors, n_features], -1)
        x = module.observation.to_model_units(values.numpy()).to(batch.x)
        terms = []
        for draw in draws:
            output = module.decode(module.draw_posterior(batch, (mean, log_variance), draw))
            rows = batch._replace(x=x, observed=there > 0.5)
            terms.append(module.log_likelihood(rows, output))
        return torch.logsumexp(torch.stack(terms), 0) - np.log(len(terms))

    values = codes.map(density, known, truth).astype(np.float64)
    return values + hidden @ codes.module.observation.log_jacobians()


def _whole_total(module: LatentModule, batch: Batch, output: Tensor) -> Tensor | None:
    """Words that a row would have if all were observed: the number seen over the chance of being seen."""
    if batch.total is None or batch.observed is None:
        return batch.total
    columns = torch.as_tensor(np.flatnonzero(module.observation.total_columns))
    chances = torch.softmax(output[..., columns], -1)
    seen = (chances * batch.observed[..., columns]).sum(-1)
    return batch.total / seen.clamp_min(1e-6)
