"""
Samples at two factors
======================

Documents of three topics, placed by two of the factors that the fit found, and coloured by the truth.
"""

import matplotlib.pyplot as plt

from sparsevae import SparseVAE
from sparsevae.datasets import make_anchored_counts
from sparsevae.plotting import plot_embedding

data = make_anchored_counts(300, 45, 3, anchors_per_factor=6, random_state=0)
model = SparseVAE(3, likelihood="multinomial", hidden_sizes=(), n_init=1, random_state=0)
factors = model.fit_transform(data.X)

# %%
# Each document has the colour of the true topic that is strongest in it. The factors were found without it.

strongest = [f"topic {k}" for k in data.factors.argmax(axis=1)]
figure, ax = plt.subplots(figsize=(5.5, 4.5), layout="constrained")
plot_embedding(factors, strongest, factors=(0, 1), ax=ax)
plt.show()
