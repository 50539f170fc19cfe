"""Opening a saved model is quick: it loads no more of torch than a fit does."""

from __future__ import annotations

import subprocess
import sys

import pytest

import sparsevae

OPTIONS = {"n_factors": 2, "max_epochs": 2, "hidden_sizes": (4,), "random_state": 0}


@pytest.mark.parametrize(
    "name,options",
    [
        ("SparseVAE", {}),
        ("SparseVAE", {"recipe": "paper"}),
        ("SparseVAE", {"gain_kept": 1.0}),
        ("VAE", {}),
        ("VSC", {}),
        ("OIVAE", {}),
    ],
)
def test_opening_does_not_load_the_compiler_of_torch(name, options, tmp_path, rng):
    model = getattr(sparsevae, name)(**OPTIONS, **options)
    model.fit(rng.normal(size=(60, 4))).save(tmp_path / "model")
    code = (
        f"import sys, sparsevae; sparsevae.{name}.load({str(tmp_path / 'model')!r}); "
        "sys.exit('torch._dynamo' in sys.modules or 'sympy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
