"""
Has a feature broken?
=====================

A model was fitted in January. In February other people come in, which is no fault, and one sensor reads
too high, which is one. ``drift`` tells the two apart.
"""

import matplotlib.pyplot as plt

from sparsevae import SparseVAE
from sparsevae.datasets import make_anchored_factors

data = make_anchored_factors(1000, 12, 3, nonlinear_share=0.0, interaction_share=0.0, random_state=0)
january, later = data.X[:600], data.X[600:]
february = later[data.factors[600:, 0] > -0.3]  # other people: more of the first factor
february[:, 4] += data.X[:, 4].std()  # a sensor that reads too high
model = SparseVAE(5, hidden_sizes=(), n_init=1, random_state=0).fit(january)
found = model.drift(february)
print(found)

# %%
# Each feature is judged by what the other features of its row say of it.

figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
shown = found.features.loc[[f"x{j}" for j in range(12)]]
ax.bar(shown.index, shown["shift"], color=["C3" if broken else "C0" for broken in shown["broken"]])
ax.set(xlabel="feature", ylabel="shift, in standard deviations")
plt.show()
