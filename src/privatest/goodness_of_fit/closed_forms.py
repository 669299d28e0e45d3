"""Distribution functions in closed form: the same few steps for every value.

The running time of SciPy's distributions depends on the values. Some sum a series for seconds
just above their location and return at once elsewhere, some allocate memory by the value. Whoever
names such a distribution and watches the clock learns about single rows without paying for it.
The ones here shift and scale a value, clip it to where nothing overflows or becomes subnormal, and
evaluate a few elementary functions: no loop, no branch, no memory beyond one array.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.validation import number

__all__ = ["CLOSED_FORMS", "ClosedForm", "closed_form"]

Floats = NDArray[np.float64]

_FLAT = 700.0  # exp(-700) is a normal float, and 1 - exp(-700) is 1
_DEEP = 6.4  # exp(-exp(6.4)) still is one
_NORMAL = 37.0  # so is the normal tail there


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """A distribution of SciPy's, by its closed form.

    Parameters
    ----------
    function : callable
        Of z = (x - loc)/scale, and of the shape where there is one.
    lower, upper : float
        Where z is clipped: beyond, the function is 0 or 1 to within 1e-15.
    shape : str
        What SciPy calls the shape parameter, or "".
    least, most : float
        Shapes for which that is so.
    """

    function: Callable[..., Floats]
    lower: float
    upper: float
    shape: str = ""
    least: float = 0.0
    most: float = math.inf

    def cdf(self, shape: Sequence[float], loc: float, scale: float) -> Callable[[Floats], Floats]:
        """Return the distribution function for these parameters."""

        def evaluate(values: Floats) -> Floats:
            with np.errstate(over="ignore"):  # an infinite z is clipped
                z = (values - loc) / scale
            return np.asarray(self.function(np.clip(z, self.lower, self.upper), *shape))

        return evaluate


def _ndtr(z: Floats) -> Floats:
    from scipy.special import ndtr  # noqa: PLC0415 - only when it is needed

    return np.asarray(ndtr(np.clip(z, -_NORMAL, _NORMAL)), dtype=np.float64)


def _laplace(z: Floats) -> Floats:
    tail = 0.5 * np.exp(-np.abs(z))
    return np.where(z < 0, tail, 1 - tail)


def _weibull(z: Floats, c: float) -> Floats:
    power = np.exp(np.clip(c * np.log(z), -_FLAT, _DEEP))
    return np.asarray(-np.expm1(-power))


_LEAST, _MOST = 1e-300, 1e300

CLOSED_FORMS: Mapping[str, ClosedForm] = {
    "norm": ClosedForm(_ndtr, -_NORMAL, _NORMAL),
    "uniform": ClosedForm(lambda z: z, 0.0, 1.0),
    "expon": ClosedForm(lambda z: -np.expm1(-z), 0.0, _FLAT),
    "laplace": ClosedForm(_laplace, -_FLAT, _FLAT),
    "logistic": ClosedForm(lambda z: 1 / (1 + np.exp(-z)), -_FLAT, _FLAT),
    "cauchy": ClosedForm(lambda z: np.arctan2(1.0, -z) / math.pi, -_MOST, _MOST),
    "gumbel_r": ClosedForm(lambda z: np.exp(-np.exp(-z)), -_DEEP, _FLAT),
    "gumbel_l": ClosedForm(lambda z: -np.expm1(-np.exp(z)), -_FLAT, _DEEP),
    "rayleigh": ClosedForm(lambda z: -np.expm1(-0.5 * z * z), 1e-150, _NORMAL),
    "lognorm": ClosedForm(lambda z, s: _ndtr(np.log(z) / s), _LEAST, _MOST, "s", most=50.0),
    "weibull_min": ClosedForm(_weibull, _LEAST, _MOST, "c", least=0.05),
    "pareto": ClosedForm(
        lambda z, b: -np.expm1(-np.minimum(b * np.log(z), _FLAT)), 1.0, _MOST, "b", least=0.05
    ),
}


def closed_form(
    name: str, plain: Sequence[float], named: Mapping[str, float]
) -> Callable[[Floats], Floats]:
    """Return the function of ``name(*plain, **named)``, with SciPy's order and names.

    Examples
    --------
    >>> closed_form("expon", [], {"scale": 2.0})(np.array([0.0, 2.0])).round(3).tolist()
    [0.0, 0.632]
    """
    form = CLOSED_FORMS[name]
    shapes = (form.shape,) if form.shape else ()
    order = (*shapes, "loc", "scale")
    given = dict(zip(order, plain, strict=False))
    if len(plain) > len(order) or named.keys() - set(order) or named.keys() & given.keys():
        raise ParameterError("cdf", f"must have the parameters of {name}: {', '.join(order)}")
    given = {"loc": 0.0, "scale": 1.0} | given | dict(named)
    if shapes and form.shape not in given:
        raise ParameterError("cdf", f"must have the shape parameter {form.shape} of {name}")
    scale = number("cdf: scale", given["scale"], above=0)
    shape = [number(f"cdf: {key}", given[key], above=0) for key in shapes]
    if not all(form.least <= value <= form.most for value in shape):
        limits = f"at least {form.least:g}" if form.least else f"at most {form.most:g}"
        raise ParameterError(f"cdf: {form.shape}", f"must be {limits} for {name}")
    return form.cdf(shape, number("cdf: loc", given["loc"]), scale)
