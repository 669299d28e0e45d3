"""Distribution functions in closed form: SciPy's values, by the same steps for every value."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from privatest.core.errors import ParameterError
from privatest.methods.ks import CLOSED_FORMS, closed_form, distribution_name, read_cdf

SHAPES: dict[str, list[float]] = {
    "lognorm": [0.01, 0.5, 50],
    "weibull_min": [0.05, 1.5, 1e6],
    "pareto": [0.05, 2, 1e3],
}
CASES = [(name, shape) for name in CLOSED_FORMS for shape in SHAPES.get(name, [None])]
GRID = np.unique(
    np.concatenate(
        [np.linspace(-60, 60, 4001), np.logspace(-308, 308, 617), -np.logspace(-308, 308, 617)]
    )
)


@pytest.mark.parametrize(("name", "shape"), CASES)
@pytest.mark.parametrize(("loc", "scale"), [(0, 1), (1.5, 0.25), (-1e3, 1e3), (0, 1e-200)])
def test_values_are_those_of_scipy(name, shape, loc, scale):
    shapes = [] if shape is None else [shape]
    values = closed_form(name, [*shapes, loc, scale], {})(GRID)
    with np.errstate(all="ignore"):
        expected = getattr(stats, name)(*shapes, loc, scale).cdf(GRID)
    np.testing.assert_allclose(values, expected, rtol=0, atol=2e-15)
    assert np.all((values >= 0) & (values <= 1))
    assert np.all(np.diff(values) >= -1e-15)


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_nothing_overflows_or_becomes_subnormal(name, shape):
    # both take longer than other numbers; (x - loc)/scale is clipped before anything is computed
    function = closed_form(name, [] if shape is None else [shape], {})
    rows = np.concatenate([GRID, [0.0, -0.0, 5e-324, 1.7e308, -1.7e308]])
    with np.errstate(over="raise", under="raise", divide="raise", invalid="raise"):
        values = function(rows[np.abs(rows) > 1e-290])
    assert not np.any((values > 0) & (values < np.finfo(float).tiny))


def test_all_spellings_of_parameters():
    x = np.linspace(-3, 9, 50)
    expected = stats.lognorm(0.5, 1, 2).cdf(x)
    for text in (
        "lognorm(0.5, 1, 2)",
        "lognorm(s=0.5, loc=1, scale=2)",
        "lognorm(0.5, scale=2, loc=1)",
    ):
        np.testing.assert_allclose(read_cdf(text).function(x), expected, atol=1e-15)
    np.testing.assert_allclose(read_cdf(("expon", (1, 2))).function(x), stats.expon(1, 2).cdf(x))


@pytest.mark.parametrize(
    "text",
    [
        *("lognorm", "lognorm(0)", "lognorm(51)", "lognorm(-1)", "weibull_min(0.01)", "pareto(0)"),
        *("norm(0, 0)", "norm(0, -1)", "norm(nan)", "norm(inf)", "norm(0, inf)", "norm(1, loc=1)"),
        *("norm(0, 1, 2)", "norm(sd=1)", "uniform(0, 1e400)", "pareto(1, 2, 3, 4)", "cauchy(s=1)"),
    ],
)
def test_bad_parameters(text):
    with pytest.raises(ParameterError, match="cdf"):
        read_cdf(text)


def test_names_are_read_without_evaluating_anything():
    assert distribution_name(" betabinom ( 1e99, 1, loc=1e300 ) ") == "betabinom"
