"""
A mask with exact zeros
=======================

Twelve features are made from three factors. The fit has room for six, finds three, and says which
feature belongs to which.
"""

import matplotlib.pyplot as plt

from sparsevae import SparseVAE
from sparsevae.datasets import make_anchored_factors
from sparsevae.plotting import plot_mask

data = make_anchored_factors(400, 12, 3, nonlinear_share=0.0, interaction_share=0.0, random_state=0)
model = SparseVAE(6, hidden_sizes=(), n_init=1, random_state=0).fit(data.X)
print(len(model.active_factors_), "factors found")

# %%
# White is an exact zero: the feature does not change with that factor at all.

figure, ax = plt.subplots(figsize=(5, 4.5), layout="constrained")
plot_mask(model, ax=ax)
plt.show()
