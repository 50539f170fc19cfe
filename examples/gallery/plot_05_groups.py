"""
Groups that share some factors
==============================

Two studies measure the same features. One factor is shared, each study has one more of its own, and
their levels differ.
"""

import matplotlib.pyplot as plt

from sparsevae import SparseVAE
from sparsevae.datasets import make_grouped_factors
from sparsevae.plotting import plot_groups

data = make_grouped_factors(400, 16, n_shared=1, n_specific=1, nonlinear_share=0.0, random_state=0)
study = [label.replace("group", "study") for label in data.target]
model = SparseVAE(4, hidden_sizes=(), max_epochs=250, learning_rate=0.01, random_state=0)
model.fit(data.X, groups=study)
print(model.group_factors())

# %%
# A factor that a study does not have is exactly zero in its rows.

model.set_output(transform="pandas")
factors = model.transform(data.X, groups=study).iloc[:, model.active_factors_]
figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
plot_groups(factors, study, ax=ax)
plt.show()
