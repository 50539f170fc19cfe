"""
A survey as a path diagram
==========================

Nine ability tests of 301 pupils (Holzinger and Swineford, 1939), a table that every textbook of factor
analysis knows.
"""

import matplotlib.pyplot as plt
import pandas as pd

from sparsevae import SparseVAE
from sparsevae.datasets import load_ability_tests
from sparsevae.plotting import plot_paths

data = load_ability_tests()
tests = pd.DataFrame(data.X, columns=data.feature_names)
model = SparseVAE(5, hidden_sizes=(), n_init=1, random_state=0).fit(tests)
print(model.survey_table(cut=0.2).round(2).to_string())

# %%
# Factors on one side, tests on the other; lines that would be weak are left out.

figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
plot_paths(model, ax=ax)
plt.show()
