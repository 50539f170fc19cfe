from __future__ import annotations

import copy
import pickle

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given
from scipy import stats

from sparsevae.likelihoods import (
    Bernoulli,
    Gaussian,
    Likelihood,
    Mixed,
    Multinomial,
    NegativeBinomial,
    Poisson,
    bernoulli_log_prob,
    gaussian_log_prob,
    get_likelihood,
    multinomial_log_prob,
    negative_binomial_log_prob,
    poisson_log_prob,
)

FLOAT64 = torch.float64
N_SAMPLES, N_FEATURES = 6, 5

# Every shared test runs on each of these; a new likelihood joins here.
LIKELIHOODS = {
    "gaussian": Gaussian(),
    "multinomial": Multinomial(),
    "bernoulli": Bernoulli(),
    "poisson": Poisson(),
    "negative_binomial": NegativeBinomial(),
    "mixed": Mixed([(Poisson(), [3, 0]), (Gaussian(), [1]), (NegativeBinomial(), [2, 4])]),
    "mixed with words": Mixed([(Gaussian(), [0, 4]), (Multinomial(), [1, 2, 3])]),
}
every_likelihood = pytest.mark.parametrize("likelihood", LIKELIHOODS.values(), ids=LIKELIHOODS)
every_factorised = pytest.mark.parametrize(
    "likelihood",
    [value for value in LIKELIHOODS.values() if value.factorised],
    ids=[key for key, value in LIKELIHOODS.items() if value.factorised],
)


@pytest.fixture
def output(generator):
    return torch.randn(N_SAMPLES, N_FEATURES, generator=generator, dtype=FLOAT64)


@pytest.fixture
def dispersion():
    return torch.tensor([0.3, 0.8, 1.0, 2.5, 6.0], dtype=FLOAT64)


@pytest.fixture
def size():
    return torch.tensor([0.2, 0.5, 1.0, 1.5, 3.0, 8.0], dtype=FLOAT64)


@pytest.fixture
def total():
    return torch.tensor([0.0, 1.0, 5.0, 20.0, 100.0, 3.0], dtype=FLOAT64)


@pytest.fixture
def draw(output, dispersion, size, total, generator):
    def draw(likelihood):
        return likelihood.sample(output, dispersion=dispersion, size=size, total=total, generator=generator)

    return draw


def test_gaussian_density_equals_scipy(output, dispersion, rng):
    x = rng.normal(size=(N_SAMPLES, N_FEATURES))
    expected = stats.norm.logpdf(x, output.numpy(), np.sqrt(dispersion.numpy()))
    np.testing.assert_allclose(
        gaussian_log_prob(torch.from_numpy(x), output, dispersion), expected, rtol=1e-12
    )
    np.testing.assert_allclose(
        Gaussian().log_prob(torch.from_numpy(x), output, dispersion=dispersion), expected.sum(-1), rtol=1e-12
    )


def test_bernoulli_density_equals_scipy(output, rng):
    x = rng.integers(0, 2, size=(N_SAMPLES, N_FEATURES)).astype(float)
    expected = stats.bernoulli.logpmf(x, 1 / (1 + np.exp(-output.numpy())))
    np.testing.assert_allclose(bernoulli_log_prob(torch.from_numpy(x), output), expected, rtol=1e-10)
    np.testing.assert_allclose(
        Bernoulli().log_prob(torch.from_numpy(x), output), expected.sum(-1), rtol=1e-10
    )


def test_poisson_density_equals_scipy(output, size, rng):
    x = rng.poisson(3.0, size=(N_SAMPLES, N_FEATURES)).astype(float)
    np.testing.assert_allclose(
        poisson_log_prob(torch.from_numpy(x), output),
        stats.poisson.logpmf(x, output.exp().numpy()),
        rtol=1e-10,
    )
    expected = stats.poisson.logpmf(x, size.numpy()[:, None] * output.exp().numpy()).sum(-1)
    np.testing.assert_allclose(
        Poisson().log_prob(torch.from_numpy(x), output, size=size), expected, rtol=1e-10
    )


@given(st.floats(1e-3, 1e3), st.floats(-10.0, 8.0), st.integers(0, 100_000))
def test_negative_binomial_density_equals_scipy(r, log_mean, x):
    mean = np.exp(log_mean)
    expected = stats.nbinom.logpmf(x, r, r / (r + mean))
    value = negative_binomial_log_prob(*(torch.tensor(v, dtype=FLOAT64) for v in (float(x), log_mean, r)))
    assert value.item() == pytest.approx(expected, rel=1e-8, abs=1e-8)


def test_negative_binomial_likelihood_uses_size_and_dispersion(output, size, dispersion, rng):
    x = rng.poisson(3.0, size=(N_SAMPLES, N_FEATURES)).astype(float)
    mean, r = size.numpy()[:, None] * output.exp().numpy(), dispersion.numpy()
    expected = stats.nbinom.logpmf(x, r, r / (r + mean)).sum(-1)
    value = NegativeBinomial().log_prob(torch.from_numpy(x), output, size=size, dispersion=dispersion)
    np.testing.assert_allclose(value, expected, rtol=1e-8)


def test_negative_binomial_approaches_the_poisson_also_in_float32():
    x = torch.arange(0.0, 40.0)
    log_mean = torch.full_like(x, 2.5)
    poisson = poisson_log_prob(x.double(), log_mean.double())
    for r in (1e8, 1e12, 1e20):
        value = negative_binomial_log_prob(x, log_mean, torch.tensor(r))
        torch.testing.assert_close(value.double(), poisson, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("r", [1e-2, 1.0, 50.0, 1e4])
def test_negative_binomial_keeps_its_digits_in_float32(r):
    x = torch.tensor([0.0, 1.0, 7.0, 300.0])
    log_mean = torch.tensor([0.5, -3.0, 2.0, 5.0])
    exact = negative_binomial_log_prob(x.double(), log_mean.double(), torch.tensor(r, dtype=FLOAT64))
    value = negative_binomial_log_prob(x, log_mean, torch.tensor(r))
    torch.testing.assert_close(value.double(), exact, rtol=1e-5, atol=1e-3)


def test_negative_binomial_gradients_are_right():
    x = torch.tensor([[0.0, 3.0, 50.0]], dtype=FLOAT64)
    log_mean = torch.tensor([[0.3, -1.0, 3.0]], dtype=FLOAT64, requires_grad=True)
    r = torch.tensor([0.1, 2.0, 40.0], dtype=FLOAT64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda m, r: negative_binomial_log_prob(x, m, r), (log_mean, r))


def test_multinomial_density_equals_scipy_with_its_coefficient(output, rng):
    x = rng.poisson(2.0, size=(N_SAMPLES, N_FEATURES)).astype(float)
    x[0] = 0.0
    shares = torch.softmax(output, -1).numpy()
    expected = [stats.multinomial.logpmf(row, row.sum(), share) for row, share in zip(x, shares, strict=True)]
    np.testing.assert_allclose(
        multinomial_log_prob(torch.from_numpy(x), output), expected, rtol=1e-10, atol=1e-12
    )


@given(st.floats(-1e4, 1e4), st.integers(0, 2**31))
def test_multinomial_ignores_a_shift_of_all_outputs(shift, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(0, 9, (3, 4), generator=generator).double()
    logits = torch.randn(3, 4, generator=generator, dtype=FLOAT64)
    torch.testing.assert_close(
        multinomial_log_prob(x, logits + shift), multinomial_log_prob(x, logits), rtol=1e-7, atol=1e-7
    )


def test_a_missing_word_leaves_the_softmax(output, rng):
    x = torch.from_numpy(rng.poisson(2.0, size=(N_SAMPLES, N_FEATURES)).astype(float))
    observed = torch.ones(N_SAMPLES, N_FEATURES, dtype=torch.bool)
    observed[:, 2] = False
    kept = [0, 1, 3, 4]
    torch.testing.assert_close(
        multinomial_log_prob(x, output, observed), multinomial_log_prob(x[:, kept], output[:, kept])
    )


@pytest.mark.parametrize(
    "log_prob",
    [bernoulli_log_prob, poisson_log_prob, lambda x, o: multinomial_log_prob(x, o)],
    ids=["bernoulli", "poisson", "multinomial"],
)
def test_extreme_outputs_stay_finite_in_float32(log_prob):
    outputs = torch.tensor([[-80.0, 80.0, 0.0]], requires_grad=True)
    value = log_prob(torch.tensor([[1.0, 1.0, 0.0]]), outputs).sum()
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(outputs.grad).all()


@every_likelihood
def test_draws_lie_in_the_support(likelihood, draw):
    x = draw(likelihood)
    assert x.shape == (N_SAMPLES, N_FEATURES)
    assert x.dtype == FLOAT64
    for part, columns in likelihood.split(N_FEATURES):
        values = x[:, columns]
        if part.support in ("count", "binary"):
            assert (values >= 0).all()
            assert (values == values.round()).all()
        if part.support == "binary":
            assert (values <= 1).all()


@every_likelihood
def test_draws_average_to_the_mean(likelihood, output, dispersion, size, total, generator):
    n_draws = 20_000
    x = likelihood.sample(
        output.expand(n_draws, -1, -1), dispersion=dispersion, size=size, total=total, generator=generator
    )
    standard_error = x.std(0) / n_draws**0.5
    deviation = (x.mean(0) - likelihood.mean(output, size=size, total=total)).abs()
    assert (deviation <= 5 * standard_error + 1e-6).all()


@every_likelihood
def test_draws_repeat_with_the_generators_seed_and_leave_the_global_one_alone(
    likelihood, output, dispersion, size, total
):
    state = torch.random.get_rng_state()
    draws = [
        likelihood.sample(
            output,
            dispersion=dispersion,
            size=size,
            total=total,
            generator=torch.Generator().manual_seed(3),
        )
        for _ in range(2)
    ]
    assert torch.equal(*draws)
    assert torch.equal(torch.random.get_rng_state(), state)


@every_likelihood
def test_replicates_run_side_by_side(likelihood, draw, output, dispersion, size):
    x = draw(likelihood)
    outputs, dispersions = torch.stack([output, -output]), torch.stack([dispersion, 2 * dispersion])
    together = likelihood.log_prob(x, outputs, dispersion=dispersions, size=size)
    assert together.shape == (2, N_SAMPLES)
    for i in range(2):
        alone = likelihood.log_prob(x, outputs[i], dispersion=dispersions[i], size=size)
        torch.testing.assert_close(together[i], alone)


@every_likelihood
def test_observing_everything_changes_nothing(likelihood, draw, output, dispersion, size):
    x = draw(likelihood)
    observed = torch.ones_like(x, dtype=torch.bool)
    torch.testing.assert_close(
        likelihood.log_prob(x, output, dispersion=dispersion, size=size, observed=observed),
        likelihood.log_prob(x, output, dispersion=dispersion, size=size),
    )


@every_likelihood
def test_missing_values_reach_neither_the_density_nor_its_gradient(
    likelihood, draw, output, dispersion, size
):
    x = draw(likelihood)
    observed = torch.rand(x.shape, generator=torch.Generator().manual_seed(1)) < 0.7
    observed[0] = False
    x[~observed] = torch.nan
    output, dispersion = output.requires_grad_(), dispersion.requires_grad_()

    value = likelihood.log_prob(x, output, dispersion=dispersion, size=size, observed=observed)
    value.sum().backward()

    assert torch.isfinite(value).all()
    assert value[0] == 0
    assert torch.isfinite(output.grad).all()
    assert (output.grad[~observed] == 0).all()
    assert dispersion.grad is None or torch.isfinite(dispersion.grad).all()


@every_factorised
def test_factorised_density_is_the_sum_over_observed_features(likelihood, draw, output, dispersion, size):
    x = draw(likelihood)
    context = {"dispersion": dispersion, "size": size}
    alone = []
    for j in range(N_FEATURES):
        only_j = (torch.arange(N_FEATURES) == j).expand(x.shape)
        alone.append(likelihood.log_prob(x, output, observed=only_j, **context))
    torch.testing.assert_close(torch.stack(alone).sum(0), likelihood.log_prob(x, output, **context))


@every_likelihood
def test_initial_output_reproduces_the_feature_means(likelihood):
    feature_mean = torch.tensor([0.1, 0.2, 0.05, 0.3, 0.35], dtype=FLOAT64)
    if likelihood is LIKELIHOODS["mixed with words"]:
        feature_mean[1:4] = torch.tensor([0.5, 0.2, 0.3])
    torch.testing.assert_close(likelihood.mean(likelihood.initial_output(feature_mean)), feature_mean)


@every_likelihood
def test_initial_output_of_an_empty_feature_is_finite(likelihood):
    feature_mean = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.5])
    assert torch.isfinite(likelihood.initial_output(feature_mean)).all()


@every_likelihood
def test_float32_in_float32_out(likelihood, draw, output, dispersion, size):
    x = draw(likelihood).float()
    context = {"dispersion": dispersion.float(), "size": size.float()}
    value = likelihood.log_prob(x, output.float(), **context)
    exact = likelihood.log_prob(x.double(), output, dispersion=dispersion, size=size)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value.double(), exact, rtol=1e-4, atol=1e-4)


@every_likelihood
def test_likelihoods_copy_and_pickle(likelihood):
    for other in (copy.deepcopy(likelihood), pickle.loads(pickle.dumps(likelihood))):
        assert repr(other) == repr(likelihood)
        assert other.factorised == likelihood.factorised


def test_multinomial_draws_have_the_asked_number_of_words(output, total, generator):
    x = Multinomial().sample(output, total=total, generator=generator)
    assert torch.equal(x.sum(-1), total)


def test_multinomial_draws_never_take_a_word_of_no_chance(generator):
    logits = torch.tensor([[0.0, -1e4, 0.0, -1e4]])
    x = Multinomial().sample(logits, total=torch.tensor([1000.0]), generator=generator)
    assert x[0, 1] == x[0, 3] == 0
    assert x.sum() == 1000


def test_mixed_density_is_the_sum_of_its_parts(draw, output, dispersion, size):
    mixed = LIKELIHOODS["mixed"]
    x = draw(mixed)
    expected = sum(
        part.log_prob(x[:, c], output[:, c], dispersion=dispersion[c], size=size) for part, c in mixed.parts
    )
    torch.testing.assert_close(mixed.log_prob(x, output, dispersion=dispersion, size=size), expected)
    assert mixed.has_dispersion
    assert mixed.uses_size
    assert not LIKELIHOODS["mixed with words"].factorised


@pytest.mark.parametrize("name", ["gaussian", "multinomial", "bernoulli", "poisson", "negative_binomial"])
def test_a_name_gives_its_likelihood(name):
    likelihood = get_likelihood(name, 4)
    assert likelihood.name == name
    assert get_likelihood(likelihood, 4) is likelihood


@pytest.mark.parametrize(
    "columns",
    [[0, 2], (0, 2), np.array([0, 2]), slice(0, 3, 2), [True, False, True, False], range(0, 4, 2)],
    ids=["list", "tuple", "array", "slice", "boolean", "range"],
)
def test_a_dict_gives_each_likelihood_its_columns(columns):
    likelihood = get_likelihood({"poisson": columns, Gaussian(): [3, 1]}, 4)
    parts = {part.name: list(c) for part, c in likelihood.split(4)}
    assert parts == {"poisson": [0, 2], "gaussian": [3, 1]}


def test_a_part_without_columns_is_allowed():
    likelihood = get_likelihood({"poisson": [], "gaussian": [0, 1]}, 2)
    x = torch.zeros(3, 2)
    assert likelihood.log_prob(x, x, dispersion=torch.ones(2)).shape == (3,)


@pytest.mark.parametrize(
    "spec, message",
    [
        ("softmax", "got 'softmax'. The paper's softmax loss is 'multinomial'"),
        ("Normal", "Real values with normal noise are 'gaussian'"),
        ("cauchy", "one of 'gaussian', 'multinomial', .*; got 'cauchy'. Pass one of these names"),
        (None, "got None"),
        (3, "got 3"),
        ({"poisson": [0, 1], "softmax": [2]}, "got 'softmax'"),
        ({"poisson": [0, 1]}, "each of the 3 columns exactly once; got 2 columns"),
        ({"poisson": [0, 1], "gaussian": [1, 2]}, "every column exactly once; got .*'poisson': \\[0, 1\\]"),
        ({"poisson": [0, 3], "gaussian": [1, 2]}, "table of 3 columns; got \\[0, 3\\]"),
        (
            {"poisson": ["age"], "gaussian": [1, 2]},
            "list of indices, a slice or a boolean mask; got \\['age'\\]",
        ),
        ({}, "every column exactly once"),
    ],
)
def test_an_unusable_specification_is_refused_with_a_remedy(spec, message):
    with pytest.raises(ValueError, match=message):
        get_likelihood(spec, 3)


def test_an_object_for_another_table_is_refused():
    with pytest.raises(ValueError, match="each of the 4 columns"):
        get_likelihood(Mixed([(Gaussian(), [0, 1])]), 4)


@pytest.mark.parametrize("likelihood", [Gaussian(), NegativeBinomial()], ids=repr)
def test_a_forgotten_dispersion_is_named(likelihood, output):
    with pytest.raises(ValueError, match=f"Expected dispersion, .* for the {likelihood.name} likelihood"):
        likelihood.log_prob(output, output)


def test_a_forgotten_total_is_named(output):
    with pytest.raises(ValueError, match="Expected total"):
        Multinomial().sample(output)


def test_every_family_says_what_it_is():
    for likelihood in LIKELIHOODS.values():
        assert isinstance(likelihood, Likelihood)
        assert likelihood.support in ("real", "count", "binary", "mixed")
