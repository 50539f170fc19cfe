"""
Which factors come back?
========================

The table is cut in halves, each is fitted alone, and factors are matched: those that are real return.
"""

import matplotlib.pyplot as plt
import pandas as pd

from sparsevae import SparseVAE, replicate
from sparsevae.datasets import load_ability_tests
from sparsevae.plotting import plot_replication

data = load_ability_tests()
tests = pd.DataFrame(data.X, columns=data.feature_names)
model = SparseVAE(4, hidden_sizes=(), n_init=1, max_epochs=100, random_state=0)
found = replicate(model, tests, n_splits=2, random_state=0)

# %%
# A factor comes back if its rank correlation with its match is 0.9 or more.

figure, ax = plt.subplots(figsize=(10, 3), layout="constrained")
plot_replication(found, ax=ax)
plt.show()
