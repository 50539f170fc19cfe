"""
The words of a topic
====================

Word counts of made-up documents with three topics. Counts of words have the multinomial likelihood.
"""

import matplotlib.pyplot as plt

from sparsevae import SparseVAE
from sparsevae.datasets import make_anchored_counts
from sparsevae.plotting import plot_weights

data = make_anchored_counts(600, 45, 3, anchors_per_factor=6, random_state=0)
words = [f"word {j}" for j in range(data.X.shape[1])]
model = SparseVAE(3, likelihood="multinomial", hidden_sizes=(), n_init=1, random_state=0)
model.fit(data.X, feature_names=words)

# %%
# The strongest words of the first factor, in the order of their size.

figure, ax = plt.subplots(figsize=(5, 4), layout="constrained")
plot_weights(model, 0, n=12, ax=ax)
plt.show()
