"""
How strong should the penalty be?
=================================

You need not say. But if you doubt the default, refit along a path of penalties and look: here the links
are the same over a wide range.
"""

import matplotlib.pyplot as plt

from sparsevae import SparseVAE, sparsity_path
from sparsevae.datasets import make_anchored_factors
from sparsevae.plotting import plot_sparsity_path

X = make_anchored_factors(400, 12, 3, nonlinear_share=0.0, interaction_share=0.0, random_state=0).X
model = SparseVAE(4, hidden_sizes=(16,), n_init=1, max_epochs=100, random_state=0)
path = sparsity_path(X, model, n_steps=5)
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
plot_sparsity_path(path, ax=ax)
plt.show()
