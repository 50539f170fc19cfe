"""Where a fit begins: plain VAEs from many starts, turned to factors under which features are sparse.

A sparse decoder is hard to find from a random start and easy to recognise once found. A plain VAE with the
right number of factors finds the *space* of the factors, fast, but not the factors: any invertible mixture of
them serves it as well. The mixture is then undone by the same criterion that defines the model. Where feature
j does not depend on factor k its slope on it is zero at every sample, so among all oblique changes of factors
the one with the sparsest slopes is taken (`rotation.rotate_slopes`), and the mask begins at the size of those
slopes.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TypeVar

import numpy as np
import torch
from sklearn.utils import check_random_state
from torch import Tensor

from sparsevae.decoder.weights import relu_layers
from sparsevae.fitting.data import FitData, linear_inputs
from sparsevae.fitting.initial import start_at_means_
from sparsevae.fitting.settings import FitSettings, new_vae
from sparsevae.fitting.state import Candidate
from sparsevae.modules import Batch, LatentModule, SparseVAEModule, VAEModule
from sparsevae.principal import pairwise_covariance
from sparsevae.rotation import rotate_slopes
from sparsevae.training import Batches, Phase, TrainingLog, train
from sparsevae.training.loop import Progress, held_out_bound

__all__ = ["dense_starts", "masked_starts", "rotated_starts", "rotation_seed", "sparse_start"]

Module = TypeVar("Module", bound=LatentModule)

_SLOPE_ROWS = 1000  # samples at which slopes are taken
_FLOOR = 0.05  # smallest start of a mask entry relative to its row: small, but able to grow
_HEAD_SCALE = 0.1  # of heads that are not fitted
_HEAD_ROWS = 2000  # samples that the first heads are fitted to
_MANY = 8  # starts from which on weak ones are given up early
_CUTS = (0.15, 0.35)  # when, in fractions of the epochs
_SETTLE = 0.4  # fraction of the epochs with a falling learning rate
_CLOSE = 1e-4  # smallest eigenvalue of the factors' correlations that float32 can invert
_WEIGHTS_AT_ONCE = 1 << 23  # encoder weights of replicates trained side by side


def dense_starts(
    settings: FitSettings,
    data: FitData,
    counts: list[int],
    epochs: int,
    progress: Progress | None,
    *,
    judge: Batches | None = None,
) -> list[tuple[VAEModule, TrainingLog]]:
    """For each number of factors, the best of several plain VAEs by its bound on the training rows.

    Successive halving: of many starts the best quarter goes on after 15 % of the epochs, and the best quarter
    of those after 35 %; starts stuck in a folded solution are recognisable by then.

    Parameters
    ----------
    settings : FitSettings
    data : FitData
    counts : list of int
        Numbers of factors to try.
    epochs : int
    progress : callable, optional
    judge : Batches, optional
        Other rows, by whose bound the best is found: of many starts on few rows, that of the training rows
        would be the one that has learnt them by heart.

    Returns
    -------
    list of (VAEModule, TrainingLog)
        One per count, in their order, each without replicate dimensions.
    """
    n_starts, n_factors, batches = settings.n_starts, settings.n_factors, data.training
    linear = _principal_maps(linear_inputs(batches), max(counts) + 1)
    jobs = [(count, start) for count in counts for start in range(n_starts)]
    width = max(1, sum(settings.config.hidden_sizes))
    at_once = max(1, _WEIGHTS_AT_ONCE // (data.source.n_features * width))
    best: dict[int, tuple[float, VAEModule, TrainingLog]] = {}
    for begin in range(0, len(jobs), at_once):
        group = jobs[begin : begin + at_once]
        module = new_vae(settings, data, len(group))
        start_at_means_(module, data.feature_mean)
        with torch.no_grad():
            for i, (count, start) in enumerate(group):
                module.used[i] = torch.arange(n_factors) < count
                if module.encoder.linear is not None:
                    path = _mixture(linear, count, n_factors, start == 0, data.random_state)
                    module.encoder.linear[i] = path
        # Fitted heads are quick where factors are many; small random ones explore more. Starts take turns.
        fitted = torch.tensor([start % 3 == 0 for _, start in group])
        fit_heads_(module, batches.spread(_HEAD_ROWS), data.feature_mean, fitted)
        rate = settings.effort.speed * settings.learning_rate
        finished = race(
            module,
            [count for count, _ in group],
            batches,
            _stages(epochs, rate, n_starts),
            generator=data.generator,
            progress=progress,
            judge=judge,
        )
        for count, finalist in finished.items():
            if count not in best or finalist[0] > best[count][0]:
                best[count] = finalist
    return [best[count][1:] for count in counts]


def rotated_starts(
    settings: FitSettings, data: FitData, counts: list[int], progress: Progress | None
) -> list[Candidate]:
    """For each number of factors the best plain VAE, turned to sparse slopes: the foot of a ladder."""
    if not counts:
        return []
    dense = dense_starts(settings, data, counts, settings.budget(data).dense, progress)
    return [
        Candidate(sparse_start(settings, data, vae), log, count)
        for (vae, log), count in zip(dense, counts, strict=True)
    ]


def masked_starts(
    module: SparseVAEModule,
    settings: FitSettings,
    data: FitData,
    epochs: int,
    progress: Progress | None,
) -> tuple[SparseVAEModule, TrainingLog]:
    """The best of several networks behind one mask, which is held: the module's replicates, raced."""
    n_starts = module.replicates[0]
    stages = _stages(epochs, settings.learning_rate, n_starts, hold_mask=True)
    finished = race(
        module, [0] * n_starts, data.training, stages, generator=data.generator, progress=progress
    )
    return finished[0][1:]


def race(
    module: Module,
    groups: list[int],
    batches: Batches,
    stages: list[list[Phase]],
    *,
    generator: torch.Generator,
    progress: Progress | None = None,
    judge: Batches | None = None,
) -> dict[int, tuple[float, Module, TrainingLog]]:
    """Train replicates through stages, give up weak ones between them; the best of each group at the end.

    Parameters
    ----------
    module : LatentModule
        With one replicate dimension.
    groups : list of int
        Which group each replicate competes in.
    batches : Batches
        Training rows.
    stages : list of lists of Phase
    judge : Batches, optional
        Rows whose bound decides; the training rows by default.

    Returns
    -------
    dict
        From group to bound, module without replicates, and its history.
    """
    alive, logs, bounds = list(groups), [TrainingLog() for _ in groups], [-math.inf for _ in groups]
    for phases in stages:
        log = train(module, batches, phases, generator=generator, progress=progress)
        logs = [before.followed_by(log.of(r)) for r, before in enumerate(logs)]
        bounds = held_out_bound(module, judge or batches).nan_to_num(-torch.inf).tolist()
        kept = [r for group in dict.fromkeys(alive) for r in _leaders(alive, bounds, group)]
        module = module.select(kept)
        alive, logs = [alive[r] for r in kept], [logs[r] for r in kept]
        bounds = [bounds[r] for r in kept]
    best = {}
    for group in dict.fromkeys(alive):
        r = max((r for r, other in enumerate(alive) if other == group), key=lambda r: bounds[r])
        best[group] = (bounds[r], module.select(r), logs[r])
    return best


def _stages(
    epochs: int, learning_rate: float, n_starts: int, *, hold_mask: bool = False
) -> list[list[Phase]]:
    """Phases between the moments at which weak starts are given up; few starts all go to the end."""
    name = "warm-up" if hold_mask else "dense"
    settle = round(_SETTLE * epochs)
    cuts = [round(fraction * epochs) for fraction in _CUTS] if n_starts >= _MANY else []
    ends = [*cuts, epochs - settle]

    def phase(epochs: int, speed: float, kl_warmup: int = 0) -> Phase:
        rates = (learning_rate, speed * learning_rate)
        return Phase(name, epochs, rates, hold_mask=hold_mask, kl_warmup=kl_warmup)

    stages = [
        [phase(end - begin, 1.0, kl_warmup=epochs // 8 if begin == 0 else 0)]
        for begin, end in pairwise([0, *ends])
    ]
    # A held mask has its ladder before it, at the full learning rate: only plain VAEs come to rest here.
    stages[-1].append(phase(settle, 1.0 if hold_mask else 0.1))
    return stages


def _leaders(groups: list[int], bounds: list[float], group: int) -> list[int]:
    """Positions of the best starts of a group: a quarter of many, all of few."""
    own = [r for r, other in enumerate(groups) if other == group]
    n_kept = math.ceil(len(own) / 4) if len(own) >= _MANY else len(own)
    return sorted(own, key=lambda r: -bounds[r])[:n_kept]


def sparse_start(
    settings: FitSettings, data: FitData, vae: VAEModule, seed: int | None = None
) -> SparseVAEModule:
    """A module with a mask, from a plain VAE: its factors turned to sparse slopes, its mask at their size.

    The seed of the rotation is drawn by default.
    """
    with torch.no_grad():
        z, _ = vae.encode(data.training.spread(_SLOPE_ROWS))
    used = int(vae.used.sum())
    if vae.observation.total_columns.any():
        _center_heads_(vae)
    moments = slope_moments(vae, z)[:, :used, :used].cpu().numpy()
    seed = rotation_seed(data) if seed is None else seed
    rotation = rotate_slopes(moments, random_state=seed)
    basis = torch.eye(vae.n_factors)
    basis[:used, :used] = torch.as_tensor(rotation.basis, dtype=torch.float32)
    basis = basis.to(z.device)
    norm = change_basis_(vae, basis)
    loadings = torch.zeros(vae.n_features, vae.n_factors)
    loadings[:, :used] = torch.as_tensor(rotation.loadings, dtype=torch.float32)
    relative = loadings / loadings.amax(-1, keepdim=True).clamp_min(1e-12)
    relative[:, :used] = relative[:, :used].clamp_min(_FLOOR)
    module = SparseVAEModule.from_vae(vae, settings.config)
    with torch.no_grad():
        module.mask.weight.copy_(norm * relative.to(norm.device))
        module.factor_covariance.copy_(_invertible(basis.mT @ basis))
    return module


def rotation_seed(data: FitData) -> int:
    """Draw what the random starts of a rotation begin with."""
    return int(data.random_state.randint(2**31 - 1))


def _invertible(correlation: Tensor) -> Tensor:
    """The correlations, weakened where factors lie so close together that they have no inverse."""
    least = float(torch.linalg.eigvalsh(correlation.double())[0])
    if least >= _CLOSE:
        return correlation
    weight = (_CLOSE - least) / (1.0 - least)
    return (1.0 - weight) * correlation + weight * torch.eye(len(correlation), device=correlation.device)


@torch.no_grad()
def change_basis_(module: VAEModule, basis: Tensor) -> Tensor:
    r"""Make :math:`T^\top z` the factors of a plain VAE; the model stays the same.

    Parameters
    ----------
    module : VAEModule
        With replicate dimensions ``...`` matching the basis.
    basis : Tensor of shape (..., n_factors, n_factors)
        T with unit columns, so that whitened factors keep unit variance and have the correlation
        :math:`T^\top T`.

    Returns
    -------
    Tensor of shape (..., n_factors)
        Norms that the new first-layer columns had; the gauge takes them out, a mask has to put them in.
    """
    inverse = torch.linalg.inv(basis)
    first = module.decoder.first
    assert first is not None, "the linear model has no shared first layer to rotate"
    module.encoder.transform_factors_(basis.mT)
    if module.row_groups is not None:
        module.row_groups.transform_(basis.mT)
    first.copy_(first @ inverse.mT)
    norm = torch.linalg.vector_norm(first, dim=-2) / module.decoder.first_layer_norm()
    first.div_(norm.unsqueeze(-2))
    return norm


@torch.no_grad()
def fit_heads_(module: VAEModule, batch: Batch, feature_mean: Tensor, fitted: Tensor) -> None:
    r"""Heads by ridge regression on random features of the first factors: a decoder that fits its encoder.

    One step of Fisher scoring from the features' means: the response of feature j is its score over its
    information :math:`I_j`, and the prior of a head is :math:`N(0, 1/D)` for each entry, as in a network
    whose outputs have unit variance.

    Parameters
    ----------
    module : VAEModule
        With replicate dimensions.
    batch : Batch
    feature_mean : Tensor of shape (n_features,)
    fitted : boolean Tensor of shape (n_replicates,)
        The others keep their random heads, made small: weak features must not begin as strong functions.
    """
    weights = module.decoder.weights()
    if weights.first is None:
        return
    likelihood, shared = module.observation.likelihood, module.nuisance.shared
    values = module.nuisance.values().items()
    parameters = {name: value.detach() if name in shared else value.detach()[0] for name, value in values}
    information = likelihood.information(feature_mean, parameters)
    with torch.enable_grad():
        output = likelihood.initial_output(feature_mean).expand_as(batch.x).clone().requires_grad_()
        density = likelihood.log_prob(batch.x, output, parameters, size=batch.size, observed=batch.observed)
        total = density.sum()
        (score,) = torch.autograd.grad(total, output)
    response = score / information
    z, _ = module.encode(batch)
    h = relu_layers(z * module.used.unsqueeze(-2), weights)  # replicate × sample × hidden
    center = h.mean(-2, keepdim=True)
    h = h - center
    values, vectors = torch.linalg.eigh((h.mT @ h).double())
    projected = vectors.mT @ (h.mT @ response).double()  # replicate × hidden × feature
    ridge = h.shape[-1] / information.double()
    heads = (vectors @ (projected / (values.clamp_min(0.0).unsqueeze(-1) + ridge))).mT.float()
    small = _HEAD_SCALE * module.decoder.heads
    module.decoder.heads.copy_(torch.where(fitted[:, None, None].to(z.device), heads, small))
    module.decoder.fix_gauge_()
    shift = (module.decoder.heads @ center.mT).squeeze(-1)
    module.decoder.intercept.copy_(likelihood.initial_output(feature_mean) - shift)


@torch.no_grad()
def slope_moments(module: VAEModule, z: Tensor) -> Tensor:
    r"""Second moments of the features' slopes, :math:`\frac1N\sum_i \nabla f_j(z_i)\nabla f_j(z_i)^\top`.

    Parameters
    ----------
    module : VAEModule
        Without replicates.
    z : Tensor of shape (n_samples, n_factors)

    Returns
    -------
    Tensor of shape (n_features, n_factors, n_factors)
    """
    weights = module.decoder.weights()
    if weights.first is None:
        return weights.heads.unsqueeze(-1) * weights.heads.unsqueeze(-2)
    h = z @ weights.first.mT
    slope = (h > 0).unsqueeze(-1) * weights.first  # sample × hidden × factor
    for weight, bias in weights.hidden:
        h = torch.relu(h) @ weight.mT + bias
        slope = (h > 0).unsqueeze(-1) * (weight @ slope)
    moments = []
    for heads in weights.heads.split(256):
        feature_slopes = heads @ slope  # sample × feature × factor
        moments.append(torch.einsum("ijk,ijl->jkl", feature_slopes, feature_slopes) / len(z))
    return torch.cat(moments)


@torch.no_grad()
def _center_heads_(module: VAEModule) -> None:
    # Adding the same function to all outputs leaves a softmax unchanged; most words do not belong to a given
    # topic, so the shift that leaves most outputs flat is the median.
    columns = torch.as_tensor(np.flatnonzero(module.observation.total_columns))
    heads = module.decoder.heads
    heads[columns] -= heads[columns].median(0).values


def _principal_maps(inputs: np.ndarray, n_components: int) -> np.ndarray:
    """Maps from encoder inputs to principal components of unit variance: (n_features, n_components)."""
    n_samples, n_features = inputs.shape
    holes = np.isnan(inputs).any()
    centred = inputs - inputs.mean(0) if not holes else np.nan_to_num(inputs - np.nanmean(inputs, 0))
    n_components = min(n_components, n_features, n_samples)
    if n_features <= n_samples:
        covariance = pairwise_covariance(inputs) if holes else centred.T @ centred / n_samples
        values, vectors = np.linalg.eigh(covariance)
        values, vectors = values[::-1][:n_components], vectors[:, ::-1][:, :n_components]
    else:
        values, left = np.linalg.eigh(centred @ centred.T / n_samples)
        values, left = values[::-1][:n_components], left[:, ::-1][:, :n_components]
        vectors = centred.T @ left / np.sqrt(np.maximum(values * n_samples, 1e-12))
    return vectors / np.sqrt(np.maximum(values, 1e-6))


def _mixture(
    linear: np.ndarray, count: int, n_factors: int, first: bool, random_state: np.random.RandomState
) -> Tensor:
    """Linear path of an encoder: leading components first, then random mixtures of one more."""
    n_features = len(linear)
    components = linear[:, : count + 1]
    rng = check_random_state(random_state)
    mixture = np.eye(components.shape[1], count)
    if not first:
        mixture = np.linalg.qr(rng.standard_normal((components.shape[1], components.shape[1])))[0][:, :count]
    path = np.zeros((n_factors, n_features), dtype=np.float32)
    mixed = (components @ mixture).T
    path[: len(mixed)] = mixed
    return torch.as_tensor(path)
