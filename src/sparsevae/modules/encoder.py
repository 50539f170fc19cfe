"""The encoder network q(z | x), with optional leading replicate dimensions on every parameter."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sparsevae.decoder.weights import normal_weights

__all__ = ["Encoder"]

_LOG_VARIANCE_RANGE = (-12.0, 6.0)  # from far sharper than float32 needs to far wider than the prior


class Encoder(nn.Module):
    r"""Amortised posterior :math:`q_\phi(z_i \mid x_i) = N(\mu_\phi(x_i), \sigma^2_\phi(x_i))`, diagonal.

    .. math:: \mu_\phi(x) = A x + M\,h(x) + m, \qquad \log\sigma^2_\phi(x) = S\,h(x) + s

    with h an MLP with ReLU. The linear path A lets a fit begin at a linear solution and bend it from there.
    Marks u of a row (which of its entries are missing, which group it belongs to) enter the first layer and
    the mean as further inputs, with weights that begin at zero.

    Parameters
    ----------
    n_features, n_factors : int
    hidden_sizes : sequence of int
        Widths of h, from the features upwards; empty for a linear encoder.
    replicates : tuple of int
        Leading dimensions of every parameter: that many independent encoders.
    generator : torch.Generator, optional
    linear_path : bool
        Whether to have A. Without it the encoder is the plain MLP of the paper.
    n_marks : int
        Marks of a row.
    held_means : bool
        Whether the means are :math:`A x + m` with A and m that training leaves alone, M = 0.
    """

    mean_bias: Tensor
    linear: Tensor | None

    def __init__(
        self,
        n_features: int,
        n_factors: int,
        hidden_sizes: Sequence[int] = (64, 64),
        *,
        replicates: tuple[int, ...] = (),
        generator: torch.Generator | None = None,
        linear_path: bool = True,
        n_marks: int = 0,
        held_means: bool = False,
    ) -> None:
        super().__init__()
        self.replicates = tuple(replicates)

        def normal(n_outputs: int, n_inputs: int, gain: float) -> nn.Parameter:
            shape = (*self.replicates, n_outputs, n_inputs)
            return nn.Parameter(normal_weights(shape, generator, times=math.sqrt(gain / n_inputs)))

        def constant(size: int, value: float = 0.0) -> nn.Parameter:
            return nn.Parameter(torch.full((*self.replicates, size), value))

        widths = (n_features, *hidden_sizes)
        self.hidden_weights = nn.ParameterList(
            normal(widths[i + 1], widths[i], 1.0 if i == 0 else 2.0) for i in range(len(widths) - 1)
        )
        self.hidden_biases = nn.ParameterList(constant(width) for width in widths[1:])
        # With a linear path the MLP begins small: a correction that has yet to be learnt.
        self.mean_weight = None if held_means else normal(n_factors, widths[-1], 0.1 if linear_path else 1.0)
        self.log_variance_weight = normal(n_factors, widths[-1], 0.01)
        self.log_variance_bias = constant(n_factors, -1.0)
        bias = torch.zeros(*self.replicates, n_factors)
        path = torch.zeros(*self.replicates, n_factors, n_features) if linear_path else None
        if held_means:
            self.register_buffer("mean_bias", bias)
            self.register_buffer("linear", path)
        else:
            self.mean_bias = nn.Parameter(bias)
            self.linear = None if path is None else nn.Parameter(path)

        def marks(n_outputs: int) -> nn.Parameter | None:
            return nn.Parameter(torch.zeros(*self.replicates, n_outputs, n_marks)) if n_marks else None

        self.mark_hidden = marks(widths[1]) if hidden_sizes else None
        self.mark_mean, self.mark_log_variance = marks(n_factors), marks(n_factors)

    def forward(self, x: Tensor, marks: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Mean and log variance of the factors, each of shape (..., n_samples, n_factors).

        Parameters
        ----------
        x : Tensor of shape (n_samples, n_features) or (..., n_samples, n_features)
            Encoder inputs; rows without replicate dimensions serve every replicate.
        marks : Tensor of shape (..., n_samples, n_marks), optional
            Marks of the rows, for an encoder that has them.
        """
        return self.moments(x, self.hidden(x, marks), marks)

    def hidden(self, x: Tensor, marks: Tensor | None = None) -> Tensor:
        """h(x), the last hidden layer: shape (..., n_samples, width)."""
        for i, (weight, bias) in enumerate(zip(self.hidden_weights, self.hidden_biases, strict=True)):
            x = _affine(x, weight, bias)
            if i == 0 and marks is not None and self.mark_hidden is not None:
                x = x + marks @ self.mark_hidden.mT
            x = torch.relu(x)
        return x

    def moments(self, x: Tensor, h: Tensor, marks: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Mean and log variance of the factors from the inputs, their last hidden layer and the marks."""
        mean = self.mean_bias.unsqueeze(-2)
        if self.mean_weight is not None:
            mean = _affine(h, self.mean_weight, self.mean_bias)
        if self.linear is not None:
            mean = mean + x @ self.linear.mT
        log_variance = _affine(h, self.log_variance_weight, self.log_variance_bias)
        if marks is not None and self.mark_mean is not None and self.mark_log_variance is not None:
            mean = mean + marks @ self.mark_mean.mT
            log_variance = log_variance + marks @ self.mark_log_variance.mT
        return mean, log_variance.clamp(*_LOG_VARIANCE_RANGE)

    @torch.no_grad()
    def transform_factors_(self, matrix: Tensor) -> None:
        r"""Make the encoder return :math:`B z` for what was :math:`z`, in place.

        Parameters
        ----------
        matrix : Tensor of shape (..., n_factors, n_factors)
            B. The posterior stays diagonal: its new variances are the diagonal of
            :math:`B\,\mathrm{diag}(\sigma^2)B^\top` at the average log variances, which is exact where B is a
            permutation or a scaling.
        """
        if self.mean_weight is not None:
            self.mean_weight.copy_(matrix @ self.mean_weight)
        self.mean_bias.copy_((matrix @ self.mean_bias.unsqueeze(-1)).squeeze(-1))
        if self.linear is not None:
            self.linear.copy_(matrix @ self.linear)
        if self.mark_mean is not None:
            self.mark_mean.copy_(matrix @ self.mark_mean)
        squares = matrix.square()
        share = squares / squares.sum(-1, keepdim=True)
        self.log_variance_weight.copy_(share @ self.log_variance_weight)
        if self.mark_log_variance is not None:
            self.mark_log_variance.copy_(share @ self.mark_log_variance)
        variances = self.log_variance_bias.exp().unsqueeze(-1)
        self.log_variance_bias.copy_((squares @ variances).squeeze(-1).clamp_min(1e-6).log())


def _affine(h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    if weight.ndim == 2:
        return torch.nn.functional.linear(h, weight, bias)
    if weight.ndim == 3 and h.ndim == 3:
        return torch.baddbmm(bias.unsqueeze(-2), h, weight.mT)
    return h @ weight.mT + bias.unsqueeze(-2)
