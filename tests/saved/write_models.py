"""Write one small saved model per estimator and likelihood, with the numbers that it gives, and one run.

Run once per release, with that release installed; later versions must load the files and give the same
numbers (`test_saved_models.py`)::

    python tests/saved/write_models.py tests/saved/0.1
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from sparsevae import NMF, OIVAE, VAE, VSC, SparseVAE

TINY = {"n_factors": 3, "max_epochs": 12, "hidden_sizes": (6, 5), "random_state": 0}
ESTIMATORS = {
    "SparseVAE": SparseVAE(**TINY, n_init=1),
    "VAE": VAE(**TINY),
    "VSC": VSC(**TINY, n_pseudo_inputs=3),
    "OIVAE": OIVAE(**TINY, group_width=2),
    "NMF": NMF(n_factors=2, random_state=0),
}
MIXED = {"gaussian": ["f0", "f1"], "bernoulli": ["f2", "f3"], "poisson": ["f4"], "negative_binomial": ["f5"]}
LIKELIHOODS = {
    "gaussian": "gaussian",
    "multinomial": "multinomial",
    "bernoulli": "bernoulli",
    "poisson": "poisson",
    "negative_binomial": "negative_binomial",
    "mixed": MIXED,
}


def table(likelihood: str, n_samples: int = 40, n_features: int = 6) -> pd.DataFrame:
    """Non-negative numbers of the right kind: a factor behind the first half, another behind the rest."""
    rng = np.random.default_rng(0)
    signal = rng.standard_normal((n_samples, 2))[:, 2 * np.arange(n_features) // n_features]
    signal = signal + 0.3 * rng.standard_normal((n_samples, n_features))
    real, binary = np.exp(0.5 * signal), (signal > 0).astype(float)
    counts = rng.poisson(np.exp(1.0 + 0.5 * signal)).astype(float)
    names = [f"f{j}" for j in range(n_features)]
    if likelihood == "mixed":
        return pd.DataFrame(np.hstack([real[:, :2], binary[:, 2:4], counts[:, 4:]]), columns=names)
    values = {"gaussian": real, "bernoulli": binary}.get(likelihood, counts)
    return pd.DataFrame(values, columns=names)


def numbers(model, X: pd.DataFrame) -> dict[str, np.ndarray]:
    """What a loaded model must give again."""
    Z = model.transform(X)
    found = {"transform": Z, "score_samples": model.score_samples(X), "inverse": model.inverse_transform(Z)}
    found["effects"] = model.effects().to_numpy()
    if hasattr(model, "mask_"):
        found["mask"] = model.mask_
    if hasattr(model, "sample"):
        found["sample"] = model.sample(5, random_state=0)
    return {name: np.asarray(value, dtype=np.float64) for name, value in found.items()}


def main(folder: Path) -> None:
    """Write all models and one run into a folder."""
    warnings.simplefilter("ignore")
    for name, estimator in ESTIMATORS.items():
        for likelihood, spec in LIKELIHOODS.items():
            X = table(likelihood)
            model = estimator.set_params(likelihood=spec).fit(X)
            place = folder / f"{name}-{likelihood}"
            model.save(place)
            np.savez_compressed(folder / f"{name}-{likelihood}.npz", X=X.to_numpy(), **numbers(model, X))
    big = SparseVAE(3, max_epochs=12, hidden_sizes=(5,), random_state=0, n_init=1)
    rng = np.random.default_rng(1)
    loadings = np.kron(np.eye(3), np.ones(40))[:, :120]
    X = rng.standard_normal((150, 3)) @ loadings + rng.standard_normal((150, 120))
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(120)])
    big.fit(frame).save(folder / "SparseVAE-wide")  # from 100 features on codes take Newton steps
    np.savez_compressed(folder / "SparseVAE-wide.npz", X=X, **numbers(big, frame))
    csv = folder / "table.csv"
    table("gaussian").to_csv(csv, index=False)
    command = [sys.executable, "-m", "sparsevae", "fit", str(csv), "--out", str(folder / "run"), "-k", "3"]
    subprocess.run([*command, "--max-epochs", "12"], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
