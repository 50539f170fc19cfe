from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sparsevae.io import suggest_likelihood


def make(kind, rng):
    shape = (200, 8)
    return {
        "real": lambda: rng.standard_normal(shape),
        "positive": lambda: rng.uniform(size=shape),
        "ratings": lambda: rng.integers(1, 6, size=shape).astype(float),
        "scores": lambda: rng.integers(1, 21, size=shape).astype(float),
        "binary": lambda: rng.integers(0, 2, size=shape).astype(float),
        "poisson": lambda: rng.poisson(0.8, size=shape),
        "overdispersed": lambda: rng.negative_binomial(0.5, 0.2, size=shape),
        "deep": lambda: rng.negative_binomial(5, 5 / (5 + 20.0), size=shape),
        "genes": lambda: rng.negative_binomial(5, 5 / (5 + rng.lognormal(1.5, 0.7, (200, 1))), size=shape),
        "ages": lambda: rng.integers(0, 90, size=shape),
        "zeros": lambda: np.zeros(shape),
    }[kind]()


@pytest.mark.parametrize(
    "kind,likelihood,reason",
    [
        ("real", "gaussian", "negative"),
        ("positive", "gaussian", "fractions"),
        ("ratings", "ordinal", "at most 10 levels, as answers on a scale do"),
        ("scores", "gaussian", "as scores are; if they are counts, choose negative_binomial"),
        ("deep", "gaussian", "as scores are"),  # no zeros at all: nothing tells them from incomes
        ("genes", "negative_binomial", "more than Poisson"),
        ("ages", "gaussian", "as scores are"),
        ("binary", "bernoulli", "0 or 1"),
        ("poisson", "poisson", "as Poisson counts do"),
        ("overdispersed", "negative_binomial", "more than Poisson"),
        ("zeros", "gaussian", "zero"),
    ],
)
@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, sparse.csr_matrix, sparse.coo_array])
def test_the_values_decide_and_the_reason_is_given(kind, likelihood, reason, form, rng):
    chosen, why = suggest_likelihood(form(make(kind, rng)))
    if form in (sparse.csr_matrix, sparse.coo_array) and kind == "ratings":
        likelihood, reason = "gaussian", "as scores are"  # nobody keeps answers in a sparse matrix
    assert chosen == likelihood
    assert reason in why


def test_a_survey_with_ages_is_told_what_keeps_it_from_being_ordinal(rng):
    answers = make("ratings", rng)
    answers[:, 0] = rng.integers(16, 90, size=len(answers))
    chosen, why = suggest_likelihood(answers)
    assert chosen == "gaussian"
    assert why.startswith("7 of 8 columns hold whole numbers of at most 10 levels")
    assert "to fit the rest as ordinal" in why
    names = ["age", *"bcdefgh"]
    for _, reason in (
        suggest_likelihood(answers, names=names),
        suggest_likelihood(pd.DataFrame(answers, columns=names)),
    ):
        assert "as answers on a scale do, and 'age' holds more; leave out" in reason


@pytest.mark.parametrize(
    "n,words", [(2, "'a' and 'b' hold"), (3, "'a', 'b' and 'c' hold"), (5, "'a', 'b', 'c' and others hold")]
)
def test_the_columns_that_are_not_answers_are_named(rng, n, words):
    answers = rng.integers(1, 6, size=(200, 12))
    answers[:, :n] = rng.integers(16, 90, size=(200, n))
    assert f"and {words} more" in suggest_likelihood(answers, names=list("abcdefghijkl"))[1]


@pytest.mark.parametrize("kind", ["real", "ratings", "binary", "poisson"])
def test_holes_change_nothing(kind, rng):
    X = make(kind, rng).astype(float)
    whole = suggest_likelihood(X)[0]
    X[rng.uniform(size=X.shape) < 0.2] = np.nan
    assert suggest_likelihood(X)[0] == whole
