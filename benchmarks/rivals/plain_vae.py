"""A variational autoencoder as one writes it by hand: plain PyTorch, Adam at one learning rate, no schedule.

The yardstick of `VAE`; it uses nothing of the package. Rows are standardised (counts after their logarithm),
as a careful user would.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["PlainVAE"]


class PlainVAE(nn.Module):
    """Encoder, decoder, and a noise deviation per feature where the values are real."""

    def __init__(self, X: Tensor, n_factors: int, hidden_sizes: tuple[int, ...], *, real: bool) -> None:
        super().__init__()
        self.rows, self.real = X, real
        seen = self._seen(X)
        self.mean, self.deviation = seen.mean(0), seen.std(0).clamp_min(1e-6)
        self.encoder = _mlp(X.shape[1], *hidden_sizes, 2 * n_factors)
        self.decoder = _mlp(n_factors, *hidden_sizes, X.shape[1])
        self.log_noise = nn.Parameter(torch.zeros(X.shape[1]))

    def fit(self, *, learning_rate: float, max_epochs: int, batch_size: int) -> PlainVAE:
        """Train on the rows that it was made with."""
        adam = torch.optim.Adam(self.parameters(), learning_rate)
        for _ in range(max_epochs):
            for batch in torch.randperm(len(self.rows)).split(batch_size):
                reconstruction, kl = self.terms(self.rows[batch])
                adam.zero_grad()
                (reconstruction + kl).mean().backward()
                adam.step()
        return self

    def terms(self, x: Tensor, *, noise: float = 1.0) -> tuple[Tensor, Tensor]:
        """-log p(x | z) and the divergence of each row; the posterior mean is the code where noise is 0."""
        mu, log_variance = self.encoder((self._seen(x) - self.mean) / self.deviation).chunk(2, -1)
        z = mu + noise * torch.exp(0.5 * log_variance) * torch.randn_like(mu)
        kl = 0.5 * (mu**2 + log_variance.exp() - log_variance - 1.0).sum(-1)
        return -self._log_prob(x, self.decoder(z)), kl

    def _log_prob(self, x: Tensor, output: Tensor) -> Tensor:
        if not self.real:
            return (x * torch.log_softmax(output, -1)).sum(-1)
        error = ((x - self.mean) / self.deviation - output) / self.log_noise.exp()
        scale = self.log_noise + self.deviation.log() + 0.5 * math.log(2.0 * math.pi)
        return -(0.5 * error**2 + scale).sum(-1)

    def _seen(self, x: Tensor) -> Tensor:
        return x if self.real else torch.log1p(x)


def _mlp(*widths: int) -> nn.Sequential:
    layers: list[Any] = []
    for below, above in pairwise(widths):
        layers += [nn.Linear(below, above), nn.ReLU()]
    return nn.Sequential(*layers[:-1])
