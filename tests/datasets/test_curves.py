import pickle

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from sparsevae.datasets.curves import Curve, Term, TopicCurve, shape_scale

Z = np.array([[0.5, -1.0, 2.0], [0.0, 3.0, -0.5]])


@pytest.mark.parametrize(
    "shape, function",
    [
        ("linear", lambda z: z),
        ("square", lambda z: z**2),
        ("sin", np.sin),
        ("tanh", np.tanh),
        ("softplus", lambda z: np.log1p(np.exp(2 * z))),
    ],
)
def test_a_term_is_its_shape_times_its_coefficient(shape, function):
    np.testing.assert_allclose(Term(1.5, shape, (1,))(Z), 1.5 * function(Z[:, 1]))


def test_a_product_multiplies_all_its_factors():
    np.testing.assert_allclose(Term(2.0, "product", (0, 1, 2))(Z), 2 * Z.prod(axis=1))


def test_a_curve_sums_its_terms_and_names_its_factors():
    curve = Curve((Term(1.0, "linear", (2,)), Term(-2.0, "product", (0, 2))), intercept=3.0)
    np.testing.assert_allclose(curve(Z), 3 + Z[:, 2] - 2 * Z[:, 0] * Z[:, 2])
    assert curve.factors == (0, 2)
    assert str(curve) == "1*z2 - 2*z0*z2 + 3"


def test_a_curve_without_terms_is_constant():
    np.testing.assert_array_equal(Curve(())(Z), [0, 0])
    assert str(Curve(())) == "0"


def test_scaling_multiplies_the_terms_only():
    curve = Curve((Term(1.0, "tanh", (0,)),), intercept=5.0)
    np.testing.assert_allclose(curve.scaled(3.0, intercept=1.0)(Z), 1 + 3 * np.tanh(Z[:, 0]))


@pytest.mark.parametrize("shape", ["linear", "square", "sin", "tanh", "softplus"])
def test_scale_of_a_shape_is_its_deviation_under_a_normal(shape):
    def moment(power):
        return quad(lambda z: Term(1.0, shape, (0,))(np.array([[z]]))[0] ** power * norm.pdf(z), -10, 10)[0]

    assert shape_scale(shape) == pytest.approx(np.sqrt(moment(2) - moment(1) ** 2), rel=1e-4)


def test_topic_curve_is_the_log_of_summed_weights():
    curve = TopicCurve((0, 2), (0.5, 2.0), background=0.25, strength=1.5)
    expected = np.log(0.25 + 0.5 * np.exp(1.5 * Z[:, 0]) + 2 * np.exp(1.5 * Z[:, 2]))
    np.testing.assert_allclose(curve(Z), expected)
    assert str(curve) == "log(0.5*exp(1.5*z0) + 2*exp(1.5*z2) + 0.25)"


def test_curves_can_be_pickled():
    curve = Curve((Term(1.0, "softplus", (0,)),))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(curve))(Z), curve(Z))
