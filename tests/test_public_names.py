from __future__ import annotations

import subprocess
import sys

import pytest

import sparsevae


@pytest.mark.parametrize("name", sparsevae.__all__)
def test_every_public_name_is_there(name):
    assert getattr(sparsevae, name) is not None
    assert name in dir(sparsevae)


@pytest.mark.parametrize("name", sparsevae._PACKAGES)
def test_every_package_is_an_attribute(name):
    assert getattr(sparsevae, name).__name__ == f"sparsevae.{name}"


def test_packages_are_reached_without_an_import_of_their_own():
    code = (
        "import sparsevae, sys\n"
        "assert 'torch' not in sys.modules\n"
        "assert callable(sparsevae.identifiability.anchors_from_covariance)\n"
        "from sparsevae import *\n"
        "assert SparseVAE is sparsevae.SparseVAE\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'SparseVAEE'"):
        sparsevae.SparseVAEE  # noqa: B018


@pytest.mark.parametrize("name", sparsevae.experiments.__all__)
def test_names_of_experiments_are_where_they_went_and_warn(name):
    with pytest.warns(DeprecationWarning, match=f"sparsevae.experiments.{name} is deprecated"):
        value = getattr(sparsevae.experiments, name)
    assert value.__module__.split(".")[1] in ("comparison", "replication", "reproduction", "sample_size")


def test_experiments_has_no_other_name():
    with pytest.raises(AttributeError, match="no attribute 'measure_all'"):
        sparsevae.experiments.measure_all  # noqa: B018
