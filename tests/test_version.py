from __future__ import annotations

import platform

import numpy as np

import sparsevae
from sparsevae import _version


def test_the_versions_are_those_that_run():
    known = _version.installed_versions()
    assert known["sparsevae"] == sparsevae.__version__ == _version.__version__
    assert known["python"] == platform.python_version()
    assert known["numpy"] == np.__version__
    assert {"torch", "scipy", "scikit-learn", "pandas"} <= known.keys()


def test_a_package_that_is_not_installed_has_no_version():
    assert _version._version("a-package-that-nobody-has") == "unknown"
