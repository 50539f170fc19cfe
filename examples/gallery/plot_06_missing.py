"""
Missing values, filled
======================

A seventh of the cells is hidden. The fit leaves them out, and ``impute`` says what to expect in them.
"""

import matplotlib.pyplot as plt
import numpy as np

from sparsevae import SparseVAE
from sparsevae.datasets import make_anchored_factors

X = make_anchored_factors(400, 12, 3, nonlinear_share=0.0, interaction_share=0.0, random_state=0).X
hidden = np.random.default_rng(0).uniform(size=X.shape) < 1 / 7
table = np.where(hidden, np.nan, X)
model = SparseVAE(5, hidden_sizes=(), n_init=1, random_state=0).fit(table)
filled = model.impute(table)
means = np.broadcast_to(np.nanmean(table, axis=0), X.shape)
for name, guess in {"the model": filled, "the mean of the column": means}.items():
    print(f"{name}: root mean squared error {np.sqrt(np.mean((guess - X)[hidden] ** 2)):.2f}")

# %%
# Each dot is a hidden cell: what it was, and what was filled in.

figure, ax = plt.subplots(figsize=(4.5, 4), layout="constrained")
ax.plot(X[hidden], filled[hidden], ".", alpha=0.4)
ax.axline((0, 0), slope=1, color="0.5", linewidth=1)
ax.set(xlabel="hidden value", ylabel="filled in", aspect="equal")
plt.show()
