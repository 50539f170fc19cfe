"""Categories without an order, compared with one of them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sparsevae.likelihoods.base import Parameters
from sparsevae.likelihoods.levels import Levels, log_shares

__all__ = ["Categorical", "categorical_log_probs"]

_LEAST_SHARE = -16.0  # logarithm of the smallest share of a category relative to the reference


def categorical_log_probs(output: Tensor, intercepts: Tensor, scores: Tensor, n_levels: Tensor) -> Tensor:
    r"""Log probability of each category, with the first one as the reference.

    .. math:: \log\frac{P(x = c)}{P(x = 0)} = a_c + b_c\,\ell, \qquad a_0 = b_0 = 0

    Parameters
    ----------
    output : Tensor of shape (..., n_samples, n_features)
    intercepts, scores : Tensor of shape (..., n_categories - 1, n_features)
        a and b.
    n_levels : Tensor of shape (n_features,)
        Number of categories of each feature; further ones have probability zero.

    Returns
    -------
    Tensor of shape (n_categories, ..., n_samples, n_features)
    """
    logits = [torch.zeros_like(output)]
    for c, (a, b) in enumerate(zip(intercepts.unbind(-2), scores.unbind(-2), strict=True), start=1):
        logit = a.unsqueeze(-2) + b.unsqueeze(-2) * output
        # The lowest finite number rather than -inf, whose gradient is NaN.
        logits.append(torch.where(c < n_levels, logit, torch.finfo(output.dtype).min))
    return torch.log_softmax(torch.stack(torch.broadcast_tensors(*logits)), 0)


class Categorical(Levels):
    r"""Categories, each with its odds against the first: :math:`\log(p_c/p_0) = a_c + b_c\,\text{output}`.

    A feature has one output, as every feature has: the categories' scores :math:`b_c` say how each follows
    it (Bock's nominal response model, Anderson's stereotype model). Parameters of the distribution:
    ``intercepts`` a, ``scores``, which are b up to their size (of mean square one), and ``n_levels``.
    """

    name = "categorical"
    ordered = False
    shared = frozenset({"n_levels"})

    def log_density(self, x: Tensor, output: Tensor, parameters: Parameters, size: Tensor | None) -> Tensor:
        log_chances = self._log_chances(output, parameters)
        level = x.round().long().clamp(0, self.n_levels - 1).expand(log_chances.shape[1:])
        return log_chances.gather(0, level.unsqueeze(0)).squeeze(0)

    def expectation(
        self,
        output: Tensor,
        parameters: Parameters,
        *,
        size: Tensor | None = None,
        total: Tensor | None = None,
    ) -> Tensor:
        """Chance of a category other than the reference."""
        return 1.0 - self._log_chances(output, parameters)[0].exp()

    def response(self, x: Tensor) -> Tensor:
        return (x > 0.5).to(x)

    def fill(
        self,
        output: Tensor,
        parameters: Parameters,
        *,
        size: Tensor | None = None,
        total: Tensor | None = None,
    ) -> Tensor:
        """The most probable category."""
        return self._log_chances(output, parameters).argmax(0).to(output.dtype)

    def probabilities(self, output: Tensor, parameters: Parameters) -> Tensor:
        """Chance of each category: shape (n_levels, ..., n_samples, n_features)."""
        return self._log_chances(output, parameters).exp()

    def information_at(
        self,
        output: Tensor,
        parameters: Parameters,
        *,
        size: Tensor | None = None,
        total: Tensor | None = None,
    ) -> Tensor:
        """Variance of the score of a drawn category."""
        chances = self.probabilities(output, parameters)[1:]
        scores = self.scores(parameters).movedim(-2, 0).unsqueeze(-2)
        mean = (chances * scores).sum(0)
        return ((chances * scores.square()).sum(0) - mean.square()).clamp_min(1e-12)

    def initial_parameters(self, n_features: int, replicates: tuple[int, ...] = ()) -> dict[str, Tensor]:
        shape = (*replicates, self.n_levels - 1, n_features)
        return {
            "intercepts": nn.Parameter(torch.zeros(shape)),
            "scores": nn.Parameter(torch.ones(shape)),
            "n_levels": torch.full((n_features,), float(self.n_levels)),
        }

    def parameters_from_counts(self, counts: Tensor) -> dict[str, Tensor]:
        """Intercepts at which an output of zero gives each category its share."""
        shares = log_shares(counts)
        return {"intercepts": (shares[1:] - shares[0]).clamp_min(_LEAST_SHARE)}

    def scores(self, parameters: Parameters) -> Tensor:
        """Scores b of the categories after the first, of mean square one: (..., n_levels - 1, n_features).

        A mask's penalty would have no hold on a feature whose scores could grow instead of its loadings.
        """
        raw, n_levels = parameters["scores"], parameters["n_levels"]
        used = torch.arange(1, self.n_levels, device=raw.device).unsqueeze(-1) < n_levels
        raw = torch.where(used, raw, 0.0)
        squares = raw.square().sum(-2, keepdim=True) / (n_levels - 1.0)
        return raw / squares.clamp_min(1e-12).sqrt()

    def _log_chances(self, output: Tensor, parameters: Parameters) -> Tensor:
        return categorical_log_probs(
            output, parameters["intercepts"], self.scores(parameters), parameters["n_levels"]
        )
