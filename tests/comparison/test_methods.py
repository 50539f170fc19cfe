from __future__ import annotations

import pytest

from sparsevae.comparison.methods import parse_methods
from sparsevae.exceptions import ParameterError


@pytest.mark.parametrize(
    "text, message",
    [
        ("VEA", "Expected methods to be among SparseVAE"),
        ("VAE(4)", "Expected methods to be among"),
        ("VAE(beta=)", "with commas between them"),
        ("VAE(beta=open('x'))", "Expected numbers, words in quotes"),
        ("", "at least one method"),
        ("sparsevae.VAE", "Expected methods to be among"),
    ],
)
def test_lists_that_cannot_be_read_are_refused(text, message):
    with pytest.raises(ParameterError, match=message):
        parse_methods(text)


def test_lists_are_read_with_their_parameters():
    assert parse_methods("VAE, VAE(beta=4), OIVAE(hidden_sizes=(8, 8), recipe='paper')") == {
        "VAE": ("VAE", {}),
        "VAE(beta=4)": ("VAE", {"beta": 4}),
        "OIVAE(hidden_sizes=(8, 8), recipe='paper')": ("OIVAE", {"hidden_sizes": (8, 8), "recipe": "paper"}),
    }
