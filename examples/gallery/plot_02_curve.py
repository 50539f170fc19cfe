"""
A response curve with its data
==============================

Links need not be straight. Here the pulse rises with stress and levels off, and headaches grow ever
faster.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sparsevae import SparseVAE
from sparsevae.plotting import plot_response

rng = np.random.default_rng(0)
stress = rng.standard_normal(500)
answers = pd.DataFrame(
    {
        "tense": stress,
        "worried": 2 * stress,
        "pulse": 70 + 5 * np.tanh(stress),
        "headaches": np.exp(stress / 2),
    }
)
answers += 0.3 * rng.standard_normal(answers.shape)
model = SparseVAE(1, n_init=1, max_epochs=150, random_state=0).fit(answers)

# %%
# The line is the expected value in the units of the table; the dots are people.

figure, axes = plt.subplots(1, 2, figsize=(8, 3.5), layout="constrained")
for ax, feature in zip(axes, ["pulse", "headaches"], strict=True):
    plot_response(model, feature, X=answers, ax=ax)
plt.show()
