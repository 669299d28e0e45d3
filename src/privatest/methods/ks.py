"""Kolmogorov–Smirnov-type tests of one sample and of two (Awan and Wang 2022).

The statistics and their sensitivities are in :mod:`privatest.numerics.ecdf`. The null distributions
follow from public sizes, so one noisy number is released and the p-value is post-processing; where
group sizes are private, labels are permuted or swapped instead. Proofs: docs/proofs/ks-type.md,
docs/proofs/private-groups.md.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Adjacency, Amount, Budget, PermutationSensitivity
from privatest.core.results import Outcome, declare_level
from privatest.core.user_code import UserCodeError, run_user_code
from privatest.core.validation import (
    Rng,
    integer_at_least,
    number,
    one_of,
    public_generator,
    reject,
)
from privatest.data.encoding import (
    Sample,
    TwoSamples,
    encode_one_column,
    encode_samples,
    rows_of_a_person,
)
from privatest.data.reading import resolve_samples
from privatest.data.schema import Bounds, Category, CheckedGrid, Grid, cut_points, read_grid
from privatest.mechanisms.lattice import MECHANISMS, Mechanism, PublicNull, lattice_outcome
from privatest.mechanisms.permutation import permutation_result
from privatest.methods.descriptor import EXACT, Method, Offered, Option
from privatest.methods.two_groups import (
    NULL_HYPOTHESIS,
    check_sizes,
    labelled_rows,
    shown_sizes,
    swaps_labels,
)
from privatest.numerics.cells import LineKind, PlacedLine, counts_of, cut_cells, rank_cells
from privatest.numerics.distances import (
    EXACT_ROWS,
    RANK_CELLS,
    LineMetric,
    permuted_distance,
    rank_cells_sensitivity,
)
from privatest.numerics.ecdf import (
    LABELLED_ROWS,
    LATTICE,
    ONE_SAMPLE_STATISTICS,
    TWO_SAMPLE_STATISTICS,
    OneSampleStatistic,
    TwoSampleStatistic,
    are_far,
    far_two_sample,
    on_lattice,
    one_sample,
    one_sample_counts,
    one_sample_width,
    two_sample,
    two_sample_cells,
    two_sample_counts,
    two_sample_width,
)
from privatest.numerics.laws import ALTERNATIVES, Alternative, Law, continuous_law
from privatest.numerics.permutation import (
    block_permutation,
    pair_swaps,
    pair_swaps_sensitivity,
    parallel,
    permuted_cells,
    private_groups_sensitivity,
    streamed_cells,
)

Floats = NDArray[np.float64]


# --- Reference distributions --------------------------------------------------------------------
#
# The running time of SciPy's distributions depends on the values, so whoever names one and watches
# the clock would learn about single rows. The closed forms here shift and scale a value, clip it to
# where nothing overflows or becomes subnormal, and evaluate a few elementary functions: no loop, no
# branch, no memory beyond one array.


_FLAT = 700.0  # exp(-700) is a normal float, and 1 - exp(-700) is 1
_DEEP = 6.4  # exp(-exp(6.4)) still is one
_NORMAL = 37.0  # so is the normal tail there


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """A SciPy distribution function of z = (x - loc)/scale and perhaps of a shape.

    z is clipped to [lower, upper]: beyond, the function is 0 or 1 to within 1e-15 for shapes
    between ``least`` and ``most``. ``shape`` is SciPy's name of the shape parameter, or "".
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


CLOSED_FORMS: Mapping[str, ClosedForm] = {
    "norm": ClosedForm(_ndtr, -_NORMAL, _NORMAL),
    "uniform": ClosedForm(lambda z: z, 0.0, 1.0),
    "expon": ClosedForm(lambda z: -np.expm1(-z), 0.0, _FLAT),
    "laplace": ClosedForm(_laplace, -_FLAT, _FLAT),
    "logistic": ClosedForm(lambda z: 1 / (1 + np.exp(-z)), -_FLAT, _FLAT),
    "cauchy": ClosedForm(lambda z: np.arctan2(1.0, -z) / math.pi, -1e300, 1e300),
    "gumbel_r": ClosedForm(lambda z: np.exp(-np.exp(-z)), -_DEEP, _FLAT),
    "gumbel_l": ClosedForm(lambda z: -np.expm1(-np.exp(z)), -_FLAT, _DEEP),
    "rayleigh": ClosedForm(lambda z: -np.expm1(-0.5 * z * z), 1e-150, _NORMAL),
    "lognorm": ClosedForm(lambda z, s: _ndtr(np.log(z) / s), 1e-300, 1e300, "s", most=50.0),
    "weibull_min": ClosedForm(_weibull, 1e-300, 1e300, "c", least=0.05),
    "pareto": ClosedForm(
        lambda z, b: -np.expm1(-np.minimum(b * np.log(z), _FLAT)), 1.0, 1e300, "b", least=0.05
    ),
}


def closed_form(
    name: str, plain: Sequence[float], named: Mapping[str, float]
) -> Callable[[Floats], Floats]:
    """Return the distribution function ``name(*plain, **named)``, as in SciPy.

    Examples
    --------
    >>> closed_form("expon", [], {"scale": 2.0})(np.array([0.0, 2.0])).round(3).tolist()
    [0.0, 0.632]
    """
    form = CLOSED_FORMS[name]
    shapes = (form.shape,) if form.shape else ()
    order = (*shapes, "loc", "scale")
    parameters = dict(zip(order, plain, strict=False))
    if len(plain) > len(order) or named.keys() - set(order) or named.keys() & parameters.keys():
        raise ParameterError("cdf", f"must have the parameters of {name}: {', '.join(order)}")
    parameters = {"loc": 0.0, "scale": 1.0} | parameters | dict(named)
    if shapes and form.shape not in parameters:
        raise ParameterError("cdf", f"must have the shape parameter {form.shape} of {name}")
    scale = number("cdf: scale", parameters["scale"], above=0)
    shape = [number(f"cdf: {key}", parameters[key], above=0) for key in shapes]
    if not all(form.least <= value <= form.most for value in shape):
        limits = f"at least {form.least:g}" if form.least else f"at most {form.most:g}"
        raise ParameterError(f"cdf: {form.shape}", f"must be {limits} for {name}")
    return form.cdf(shape, number("cdf: loc", parameters["loc"]), scale)


_SPELLING = 'a function, a frozen scipy distribution, "norm(0, 1)" or ("norm", (0, 1))'
_AS_TEXT = 'a distribution with its parameters, such as "norm(0, 1)"'
_CALL = re.compile(r"\s*([a-z][a-z0-9_]*)\s*(?:\(([^()]*)\))?\s*", re.ASCII)
_PARAMETER = re.compile(r"(?:([A-Za-z_]\w*)\s*=\s*)?(\S+)", re.ASCII)
_TOLERANCE = 1e-9  # by which rounding may break an order
_UNKNOWN = 0.5  # stands for a probability that is not a number, or that could not be computed
_PROBED = 0.0  # a public number, on which the function was tried
_EACH = 8  # every eighth of the numbers on which a function is tried is also tried alone


@dataclass(frozen=True, slots=True)
class ReferenceCdf:
    """A distribution function of an array of floats, value by value, and its name."""

    function: Callable[[Floats], Any]
    name: str

    def limits(self, values: Floats) -> tuple[Floats, Floats]:
        """Return F(x-) and F(x) for private values; anything else is replaced by a probability.

        Nothing is raised, whatever the function raises: an error would reveal a value.
        """
        left = _call(self.function, np.nextafter(values, -np.inf))
        right = _call(self.function, values)
        # A function that is not monotone between probes: still two numbers of one record.
        return np.minimum(left, right), right

    def at(self, cuts: Floats) -> Floats:
        """Return F at public, increasing cut points, itself increasing."""
        return np.maximum.accumulate(_call(self.function, cuts))


def read_cdf(cdf: object) -> ReferenceCdf:
    """Return the function that ``cdf`` names or is, checked on public numbers."""
    if isinstance(cdf, str):
        reference = _named(*_parse(cdf))
    elif isinstance(cdf, tuple) and len(cdf) == 2 and isinstance(cdf[0], str):
        reference = _named(cdf[0], _numbers(cdf[1]), {})
    elif callable(getattr(cdf, "cdf", None)):
        reference = ReferenceCdf(cdf.cdf, _frozen_name(cdf))  # type: ignore[attr-defined]
    elif callable(cdf):
        reference = ReferenceCdf(cdf, "the given distribution")
    else:
        reject("cdf", _SPELLING, cdf)
    _probe(reference.function)
    return reference


def distribution_name(text: str) -> str:
    """Return the name in ``name(1, 2, scale=3)``; nothing is evaluated."""
    return _parse(text)[0]


def _numbers(values: object, expected: str = _SPELLING) -> list[float]:
    try:
        return [float(value) for value in values]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        reject("cdf", expected, values)


def _parse(text: str) -> tuple[str, list[float], dict[str, float]]:
    """Read ``name(1, 2, scale=3)``; nothing is evaluated."""
    call = _CALL.fullmatch(text)
    if call is None:
        reject("cdf", _AS_TEXT, text)
    plain: list[float] = []
    named: dict[str, float] = {}
    for part in (call[2] or "").split(",") if (call[2] or "").strip() else []:
        parameter = _PARAMETER.fullmatch(part.strip())
        if parameter is None:
            reject("cdf", _AS_TEXT, text)
        (value,) = _numbers([parameter[2]], _AS_TEXT)
        if parameter[1]:
            named[parameter[1]] = value
        else:
            plain.append(value)
    return call[1], plain, named


def _named(name: str, plain: Sequence[float], named: dict[str, float]) -> ReferenceCdf:
    shown = [f"{value:g}" for value in plain] + [f"{key}={v:g}" for key, v in named.items()]
    words = f"{name}({', '.join(shown)})"
    if name in CLOSED_FORMS:
        return ReferenceCdf(closed_form(name, plain, named), words)
    import scipy.stats  # noqa: PLC0415 -- slow to import

    family = getattr(scipy.stats, name, None)
    if not isinstance(family, (scipy.stats.rv_continuous, scipy.stats.rv_discrete)):
        raise ParameterError("cdf", f"must name a distribution of scipy.stats; {name!r} is not one")
    try:
        frozen = family(*plain, **named)
    except (TypeError, ValueError):
        raise ParameterError(
            "cdf", f"must have parameters that {name} takes, not ({', '.join(shown)})"
        ) from None
    return ReferenceCdf(frozen.cdf, words)


def _frozen_name(frozen: Any) -> str:
    family = getattr(getattr(frozen, "dist", None), "name", None)
    if not isinstance(family, str):
        return "the given distribution"
    values = [f"{value}" for value in getattr(frozen, "args", ())]
    values += [f"{key}={value}" for key, value in getattr(frozen, "kwds", {}).items()]
    return f"{family}({', '.join(values)})"


def _call(function: Callable[[Floats], Any], values: Floats) -> Floats:
    """Return a probability for each value, also where the function fails.

    A function that fails on an array may do so because of one record. Then values are tried one
    by one, and those that fail are left out: the others are evaluated in an array as before, so
    that they keep their probabilities to the last bit, and one record moves one probability.
    """
    try:
        return _call_once(function, values)
    except UserCodeError:
        singles = np.array([_single(function, value) for value in values[:, None]])
    failing = np.isnan(singles)
    try:
        together = _call_once(function, np.where(failing, _PROBED, values))
    except UserCodeError:
        together = singles
    return np.where(failing, _UNKNOWN, together)


def _single(function: Callable[[Floats], Any], value: Floats) -> float:
    """Return the probability of one value, NaN if the function fails."""
    try:
        return float(_call_once(function, value)[0])
    except UserCodeError:
        return math.nan


def _call_once(function: Callable[[Floats], Any], values: Floats) -> Floats:
    probabilities = run_user_code(lambda: _as_numbers(function(values.copy()), values.shape))
    probabilities[~np.isfinite(probabilities)] = _UNKNOWN
    return np.asarray(np.clip(probabilities, 0.0, 1.0))


def _as_numbers(result: object, shape: tuple[int, ...]) -> Floats:
    """Return numbers in the shape of what the function was given: it may squeeze a single one."""
    return np.array(result, dtype=np.float64).reshape(shape)


def _probe(function: Callable[[Floats], Any]) -> None:
    """Try the function on public numbers, near and far: together, in two parts, and alone."""
    far = np.logspace(-6, 15, 127)
    grid = np.unique(np.concatenate([-far, far, np.linspace(-20, 20, 401), [_PROBED]]))
    pieces = [grid, *np.split(grid, [99]), *grid[::_EACH, None]]
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = [np.array(function(piece.copy()), dtype=np.float64) for piece in pieces]
    except Exception as error:
        raise ParameterError(
            f"cdf must take an array of numbers, also of one; it failed with "
            f"{type(error).__name__}."
        ) from None
    same_sizes = [result.size for result in results] == [piece.size for piece in pieces]
    if not same_sizes or not np.isfinite(results[0]).all():
        raise ParameterError("cdf must return a finite number for each number of an array.")
    values, *others = (result.ravel() for result in results)
    if values.min() < -_TOLERANCE or values.max() > 1 + _TOLERANCE:
        raise ParameterError("cdf must lie between 0 and 1.")
    if np.diff(values).min() < -_TOLERANCE:
        raise ParameterError("cdf must not decrease anywhere.")
    expected = np.concatenate([values, values[::_EACH]])
    if not np.allclose(np.concatenate(others), expected, rtol=0, atol=_TOLERANCE):
        raise ParameterError("cdf must evaluate each number on its own, not by its neighbours.")


# --- Null distributions of two samples ----------------------------------------------------------
#
# They hold for every continuous distribution of the data, so they are public and are cached. Ties
# that are broken by secret labels do not change them.


def two_sample_null(
    n: int, m: int, statistic: TwoSampleStatistic, adjacency: Adjacency, *, one_sided: bool
) -> PublicNull:
    """Return the null distribution of n m times the distance of two samples."""
    law = two_sample_law(statistic, n, m, one_sided=one_sided)
    return PublicNull(law, two_sample_width(n, m, adjacency), math.gcd(n, m), n * m)


_MOST_PATHS = 4_000_000  # n · m up to which n != m is counted exactly: about a second
_MOST_THRESHOLDS = 250
# Above these lambda = sqrt(nm/(n+m)) T thresholds are this far apart. With upper end points a
# p-value near .05 is too large by about 3% of itself.
_ZONES = ((0.3, 0.05), (0.8, 0.01), (2.6, 0.1), (4.6, math.inf))
_MOST_WORK = 1e8  # cells of walks; beyond, thresholds are further apart
_CHUNK = 24  # thresholds computed together, so that narrow bands are not padded to wide ones
_LIMIT_ERROR = 0.3  # over max(n, m): of KS with n = m; otherwise the limit law is above the exact


@lru_cache(maxsize=256)
def two_sample_law(
    statistic: TwoSampleStatistic, n: int, m: int, *, one_sided: bool = False
) -> Law:
    """Return the law of J = n m T, the integer that ``ecdf.two_sample`` computes.

    ``one_sided`` is for "ks": the law of the largest i m - j n, which by symmetry is also that of
    the largest j n - i m.

    Exact for n = m. Otherwise exact at thresholds (all of them, or close ones), upper end points
    in between; for more than 4,000,000 = n · m the limit law with a bound on its error.

    Examples
    --------
    >>> law = two_sample_law("ks", 5, 5)
    >>> law.masses[::-1].cumsum()[::-1].round(8).tolist()
    [1.0, 1.0, 0.87301587, 0.35714286, 0.07936508, 0.00793651]
    """
    n, m = min(n, m), max(n, m)
    if n == m:
        return _equal_one_sided(n) if one_sided else _equal_sizes(statistic, n)
    if n * m > _MOST_PATHS:
        return _large_sizes("one-sided" if one_sided else statistic, n, m)
    step = math.gcd(n, m)
    thresholds = _thresholds(n, m, step)
    walk = _ks_walk if statistic == "ks" else _kuiper_walk
    if one_sided:
        far = math.ceil(_ZONES[-1][0] * math.sqrt(n * m * (n + m)) / step) * step
        walk = partial(_ks_walk, least=far)
    chunks = np.split(thresholds, range(_CHUNK, len(thresholds), _CHUNK))
    below = np.concatenate([walk(n, m, chunk, step) for chunk in chunks])
    survival = np.concatenate([[1.0], np.minimum.accumulate(np.clip(1 - below, 0, 1)), [0.0]])
    values = np.concatenate([thresholds - step, [n * m]]).astype(np.float64)
    return Law(values, -np.diff(survival))


def _equal_one_sided(n: int) -> Law:
    """Reflection at one barrier: P(max(i - j) >= k) = C(2n, n+k)/C(2n, n)."""
    survival = np.append(_ratios(n, min(n, math.ceil(10 * math.sqrt(n)))), 0.0)
    return Law(n * np.arange(len(survival) - 1.0), -np.diff(survival))


def _ratios(n: int, top: int) -> Floats:
    """Return C(2n, n+k)/C(2n, n) for k = 0, ..., top; beyond 10 sqrt(n) it is below 1e-43."""
    i = np.arange(1.0, top + 1)
    ratios: Floats = np.exp(np.concatenate([[0.0], np.cumsum(np.log((n - i + 1) / (n + i)))]))
    return ratios


def _equal_sizes(statistic: TwoSampleStatistic, n: int) -> Law:
    """Reflection: KS 2 sum (-1)^(j+1) c(jk); Kuiper 2 [k S(k) - (k+1) S(k+1)], S(w) = sum c(jw).

    c(k) is that of :func:`_ratios`. Below sqrt(n)/4 the survival function is 1 up to 1e-15.
    """
    top = min(n, math.ceil(10 * math.sqrt(n)))
    ratios = _ratios(n, top)
    first = max(1, int(math.sqrt(n) / 4))
    sums = np.zeros(top + 2 - first)  # for k = first, ..., top + 1
    for j in range(1, top // first + 1):
        terms = ratios[j * first :: j]
        sign = -1 if statistic == "ks" and j % 2 == 0 else 1
        sums[: len(terms)] += sign * terms
    if statistic == "ks":
        upper = 2 * sums
    else:
        weighted = np.arange(first, top + 2) * sums
        upper = 2 * (weighted - np.append(weighted[1:], 0.0))
    survival = np.concatenate([np.ones(first), upper])
    survival = np.minimum.accumulate(np.clip(survival, 0.0, 1.0))
    survival[-1] = 0.0
    return Law(n * np.arange(top + 1.0), -np.diff(survival))


def _thresholds(n: int, m: int, step: int) -> NDArray[np.int64]:
    """Return the increasing multiples of ``step`` at which the law is computed.

    All of them, or a sixteenth of the sensitivity apart, or by zones, so that there are few.
    """
    unit = math.sqrt(n * m * (n + m))  # lambda = J / unit
    least = max(step, m / 16)
    last = min(n * m, _ZONES[-1][0] * unit)
    points: list[float] = []
    if last / least <= _MOST_THRESHOLDS:
        points.extend(np.arange(1, math.floor(last / least) + 1) * least)
    else:
        # about 200 thresholds, and bands of 1.6 · 2 · unit / n cells on average in each of n rows
        coarser = max(1.0, 640 * unit / _MOST_WORK)
        for (start, width), (stop, _) in pairwise(_ZONES):
            spacing = max(coarser * width * unit, least)
            points.extend(np.arange(start * unit, min(stop * unit, last), spacing))
    rounded = np.unique(np.ceil(np.array(points) / step - 1e-9)).astype(np.int64) * step
    return rounded[rounded <= n * m]


def _end_probability(n: int, m: int) -> float:
    """Return P(Binomial(n + m, n/(n + m)) = n): that a walk of independent steps ends at (n, m)."""
    from scipy.stats import binom  # noqa: PLC0415 -- slow to import

    return float(binom.pmf(n, n + m, n / (n + m)))


def _ks_walk(n: int, m: int, thresholds: NDArray[np.int64], step: int, *, least: int = 0) -> Floats:
    """Return P(J < r): a path from (0, 0) to (n, m) that is killed where |i m - j n| >= r.

    One row i at a time; within a row the walk in j is a linear recurrence. Steps are
    independent, and what ends elsewhere is divided out at the end. On the other side, j n - i m,
    a path is killed at ``least`` only, if that is larger: with a distance that has a probability
    below 1e-17 it is a one-sided law.
    """
    from scipy.signal import lfilter  # noqa: PLC0415 -- slow to import

    del step
    up, along = n / (n + m), m / (n + m)
    others = np.maximum(thresholds, least)
    alive = np.zeros((len(thresholds), m + 1))
    for i in range(n + 1):
        low = np.maximum(0, (i * m - thresholds) // n + 1)[:, None]
        high = np.minimum(m, -((-i * m - others) // n) - 1)[:, None]
        row = slice(int(low.min()), int(high.max()) + 1)
        columns = np.arange(row.start, row.stop)
        if i == 0:
            alive[:, 0] = 1.0
            entering = alive[:, row].copy()
        else:
            entering = up * alive[:, row] * (columns >= low)
        alive[:, row] = lfilter([1.0], [1.0, -along], entering, axis=1) * (columns <= high)
    result: Floats = alive[:, m] / _end_probability(n, m)
    return result


def _kuiper_walk(n: int, m: int, thresholds: NDArray[np.int64], step: int) -> Floats:
    """Return P(J < r): rotate the circle of steps so that it starts at its first minimum.

    Paths with 0 <= i m - j n < r. Layer 0 has not yet come back to 0; when it does it moves to
    layer 1 with the time of return as its weight, the number of rotations it stands for.
    """
    from scipy.signal import lfilter  # noqa: PLC0415 -- slow to import

    up, along = n / (n + m), m / (n + m)
    limits = thresholds - step  # all values are multiples of the step
    layers = np.zeros((2, len(limits), m + 1))
    layers[0, :, 0] = 1.0
    for i in range(1, n + 1):
        low = np.maximum(0, -((limits - i * m) // n))[:, None]
        last = i * m // n
        row = slice(int(low.min()), last + 1)
        entering = up * layers[:, :, row] * (np.arange(row.start, row.stop) >= low)
        layers[:, :, row] = lfilter([1.0], [1.0, -along], entering, axis=2)
        if i * m % n == 0:
            layers[1, :, last] += (i + last) * layers[0, :, last]
            layers[0, :, last] = 0.0
    result: Floats = layers[1, :, m] / _end_probability(n, m)
    return result


def kuiper_limit(x: Floats, n: float = math.inf) -> Floats:
    """Return P(sqrt(n) V >= x) by Kuiper's series, with its term of order 1/sqrt(n)."""
    j = np.arange(1.0, 41.0)[:, None]
    x = np.maximum(x, 0.3)  # below, it is 1 up to 1e-20, and the series is slow
    decay = np.exp(-2 * np.square(j * x))
    total = 2 * ((4 * np.square(j * x) - 1) * decay).sum(axis=0)
    correction = (np.square(j) * (4 * np.square(j * x) - 3) * decay).sum(axis=0)
    result: Floats = total - 8 * x / (3 * math.sqrt(n)) * correction
    return np.clip(result, 0.0, 1.0)


def _large_sizes(statistic: TwoSampleStatistic | Literal["one-sided"], n: int, m: int) -> Law:
    from scipy.special import kolmogorov  # noqa: PLC0415

    x = np.linspace(0.0, 6.0, 24_001)
    if statistic == "one-sided":
        survival = np.exp(-2 * np.square(x))  # Smirnov
    else:
        survival = kolmogorov(x) if statistic == "ks" else kuiper_limit(x)
    return continuous_law(x * math.sqrt(n * m * (n + m)), survival, _LIMIT_ERROR / m, proved=False)


# --- Null distributions of one sample -----------------------------------------------------------
#
# In units of the sensitivity 1/n. Where a law is not exact, a bound on its error is added to the
# p-value.


def one_sample_null(n: int, statistic: OneSampleStatistic, *, one_sided: bool) -> PublicNull:
    """Return the null distribution of n times the distance of a sample, in lattice steps."""
    law = one_sample_law(statistic, n, one_sided=one_sided).scaled(LATTICE)
    return PublicNull(law, one_sample_width(n), unit=n * LATTICE)


_EXACT_KS = 1000  # up to this n: beyond, scipy's kstwo takes seconds
_EXACT_KUIPER = 400
_REACH = 3.7  # of sqrt(n) T, beyond which all probabilities are below 1e-9
_CELLS = 4000
_INTERPOLATION_ERROR = 1e-7
_TERMS = 24  # of the series of Cramér-von Mises; below 1e-15 for all arguments up to 4
_WASSERSTEIN_TABLE = Path(__file__).parent / "wasserstein.npz"


@lru_cache(maxsize=64)
def one_sample_law(statistic: OneSampleStatistic, n: int, *, one_sided: bool = False) -> Law:
    """Return the law of n · T, ``ecdf.one_sample`` of n independent uniform values.

    ``one_sided`` is for "ks": the law of sup (F_n - F), which is also that of sup (F - F_n).
    """
    points = np.linspace(0.0, min(_REACH, math.sqrt(n)), _CELLS + 1)  # of sqrt(n) T
    laws = {"ks": _ks, "kuiper": _kuiper, "cvm": _cvm, "wasserstein": _wasserstein}
    survival, error = (_ks_one_sided if one_sided else laws[statistic])(points, n)
    proved = statistic == "ks" or (statistic == "kuiper" and n <= _EXACT_KUIPER)
    return continuous_law(points * math.sqrt(n), survival, error, proved=proved)


def _ks(x: Floats, n: int) -> tuple[Floats, float]:
    from scipy.special import kolmogorov  # noqa: PLC0415

    root = math.sqrt(n)

    # Vrbik's correction of the limit law: what is left to interpolate is small
    def corrected_at(x: Floats) -> Floats:
        shifted = x + 1 / (6 * root) + (x - 1) / (4 * n)
        return np.asarray(kolmogorov(np.maximum(shifted, 0.0)), dtype=np.float64)

    if n > _EXACT_KS:
        bound = np.minimum(2 * _massart(x), 1.0)
        return bound, float(bound[-1])  # what is beyond the last point
    from scipy.stats import kstwo  # noqa: PLC0415 -- slow to import

    nodes = _nodes(x, n)
    left = kstwo.sf(nodes / root, n) - corrected_at(nodes)
    return corrected_at(x) + _interpolate(nodes, left, x), max(1e-5 / n, _INTERPOLATION_ERROR)


def _ks_one_sided(x: Floats, n: int) -> tuple[Floats, float]:
    """Birnbaum and Tingey's finite sum; beyond n = 1000 Massart's bound."""
    from scipy.special import smirnov  # noqa: PLC0415

    root = math.sqrt(n)
    if n > _EXACT_KS:
        bound = _massart(x)
        return np.where(bound <= 0.5, bound, 1.0), float(bound[-1])
    limit = np.exp(-2 * np.square(x + 1 / (6 * root)))
    if n <= 64:  # a kink at n T = 1 is too sharp to interpolate
        return np.asarray(smirnov(n, np.minimum(x / root, 1.0))), _INTERPOLATION_ERROR
    # a polynomial between integers n T, least smooth near 0; nodes must not be nearly equal
    close = np.concatenate([np.arange(0, 3, 1 / 128), np.arange(3, 16, 1 / 16)])
    scaled = np.unique(np.round(np.append(_nodes(x, n) * root, close) * 128) / 128)
    last = x[-1] * root
    scaled = np.append(scaled[scaled < last - 1 / 256], last)
    nodes = scaled / root
    left = smirnov(n, np.minimum(scaled / n, 1.0)) - np.exp(-2 * np.square(nodes + 1 / (6 * root)))
    return limit + _interpolate(nodes, left, x), 1e-5


def _massart(x: Floats) -> Floats:
    """Return exp(-2 y²) for y a cell below x: half a cell's mass may be counted a cell too low.

    Massart (1990): P(√n D⁺ > y) is at most this where it is at most 1/2, and P(√n D > y) at most
    twice this for all y.
    """
    before = np.concatenate([x[:1], x[:-1]])
    bound: Floats = np.exp(-2 * np.square(before))
    return bound


def _nodes(x: Floats, n: int) -> Floats:
    """Return points at which the exact law is computed; for small n it has kinks 1/(2n) apart."""
    if n > 100:
        return x[:: _CELLS // 200]
    spacing, root = 0.5 / max(8, 512 // n), math.sqrt(n)  # the spacing is that of n T
    return np.append(np.arange(0, x[-1] * root - 1e-9, spacing) / root, x[-1])


def _interpolate(nodes: Floats, values: Floats, x: Floats) -> Floats:
    from scipy.interpolate import PchipInterpolator  # noqa: PLC0415

    return np.asarray(PchipInterpolator(nodes, values)(x), dtype=np.float64)


def _kuiper(x: Floats, n: int) -> tuple[Floats, float]:
    if n > _EXACT_KUIPER:  # 6.5e-4 at n = 400
        return kuiper_limit(x, n), 0.3 / n
    parts = 16 if n <= 100 else 8  # thresholds in each 1/n
    most = min(n, math.ceil(_REACH * math.sqrt(n)))
    below = np.array([kuiper_cdf(n, part / parts, most) for part in range(parts)])
    scaled = np.append(np.arange(most * parts) / parts, most)  # of n V
    survival = 1 - np.append(below.T.ravel(), 1.0)
    return _interpolate(scaled, survival, np.minimum(x * math.sqrt(n), most)), _INTERPOLATION_ERROR


def kuiper_cdf(n: int, fraction: float, count: int) -> Floats:
    """Return P(n V <= k + fraction) for k = 0, ..., count - 1, exactly.

    P = n P((i+1)/n - v <= U_(i) <= i/n for all i < n), U of n - 1 uniforms: a Poisson process
    of rate n that counts n - 1 at its end, kept between floor(n t) and n (t + v) - 1. The bounds
    change only at i/n and at (i - fraction)/n, so that one pass serves all k.

    Examples
    --------
    >>> float(kuiper_cdf(3, 0.8, 2)[1].round(8)), float(kuiper_cdf(10, 0.0, 5)[4].round(7))
    (0.42666667, 0.6872208)
    """
    from scipy.stats import poisson  # noqa: PLC0415 -- slow to import

    # state: the count above floor(n t), one row of states for each k
    states, k = np.arange(count + 1), np.arange(count)[:, None]
    rises = states[None, :] - states[:, None]
    before, after = (poisson.pmf(rises, size) for size in (1 - fraction, fraction))
    alive = np.zeros((count, count + 1))
    alive[:, 0] = 1.0
    for _ in range(1, n):
        alive = (alive @ before) * (states < k)  # just before (i - fraction)/n: at most i + k - 2
        alive = alive @ after
        # at i/n at least i: state 0 is dead, and the others are now one less above the floor
        alive = np.append(alive[:, 1:], np.zeros((count, 1)), axis=1)
    # nothing happens in the last 1/n, and the whole count was n - 1
    ends = n * math.exp(-1) * alive[:, 0] / poisson.pmf(n - 1, n)
    return np.asarray(np.clip(ends, 0.0, 1.0), dtype=np.float64)


def _cvm(x: Floats, n: int) -> tuple[Floats, float]:
    """Csörgő and Faraway (1996), equation 1.8: an error of .0023 at n = 5, and of order 1/n²."""
    nodes = np.square(np.linspace(0.03, 2.0, 800))  # of n times the integral of (F_n - F)²
    below = (1 + 1 / (12 * n)) * _cvm_limit(nodes) + _cvm_correction(nodes) / n
    squares = np.square(x)
    survival = 1 - _interpolate(nodes, below, np.clip(squares, nodes[0], nodes[-1]))
    survival[squares >= min(4.0, n / 3)] = 0.0
    survival[squares <= max(1e-3, 1 / (12 * n))] = 1.0
    return survival, 0.12 / n**2 + _INTERPOLATION_ERROR


def _cvm_limit(x: Floats) -> Floats:
    from scipy.special import gamma, kv  # noqa: PLC0415

    total = np.zeros_like(x)
    for k in range(_TERMS):
        y = 4 * k + 1
        q = y**2 / (16 * x)
        weight = gamma(k + 0.5) / gamma(k + 1) * math.sqrt(y) / math.pi**1.5
        total += weight / np.sqrt(x) * np.exp(-q) * kv(0.25, q)
    return total


def _cvm_correction(x: Floats) -> Floats:
    """Return the term psi_1 of order 1/n, without the part that is in the limit law."""
    from scipy.special import gamma, kv  # noqa: PLC0415

    def second(y: Floats) -> Floats:
        z = np.square(y) / 4
        return np.asarray(np.exp(-z) * (y / 2) ** 1.5 * (kv(0.25, z) + kv(0.75, z)))

    def third(y: Floats) -> Floats:
        z = np.square(y) / 4
        terms = 2 * kv(0.25, z) + 3 * kv(0.75, z) - kv(1.25, z)
        return np.asarray(np.exp(-z) * (y / 2) ** 2.5 * terms)

    total, root = np.zeros_like(x), 2 * np.sqrt(x)
    for k in range(_TERMS):
        first, middle, last = ((4 * k + shift) / root for shift in (1, 3, 5))
        odd = 2 * k + 1
        low = odd * (second(middle) / 9 + 7 * (second(first) + second(last)) / 144)
        high = third(first) / 72 + (odd + 2) * (k + 0.5) * third(last) / 6
        scale = gamma(k + 0.5) / gamma(k + 1) / math.pi**1.5
        total -= scale * (low / x**0.75 + high / x**1.25)
    return total


def _wasserstein(x: Floats, n: int) -> tuple[Floats, float]:
    """Upper limits of a simulation; between the sizes in the table the larger neighbour."""
    sizes, points, survival = _wasserstein_table()
    above = min(int(np.searchsorted(sizes, n)), len(sizes) - 1)
    below = above if sizes[above] <= n else above - 1
    larger = np.maximum(survival[above], survival[below])
    # never 0: beyond the last point the value there is still a bound
    return np.interp(x, points, larger), float(larger[-1]) + _INTERPOLATION_ERROR


@lru_cache(maxsize=1)
def _wasserstein_table() -> tuple[NDArray[np.int64], Floats, Floats]:
    with np.load(_WASSERSTEIN_TABLE) as table:
        return table["sizes"], table["points"], table["survival"].astype(np.float64)


# --- Public functions ---------------------------------------------------------------------------


_WHOLE_ROWS = 1 << 17  # of both samples: up to here all are labelled, which is quick
_NAMES = {
    "ks": "Kolmogorov-Smirnov",
    "kuiper": "Kuiper",
    "cvm": "Cramér-von Mises",
    "wasserstein": "Wasserstein",
}
_ONE_SAMPLE_NULLS = {
    "two-sided": "the data come from",
    "greater": "the distribution function of the data is nowhere above that of",
    "less": "the distribution function of the data is nowhere below that of",
}
_TWO_SAMPLE_NULLS = {
    "two-sided": NULL_HYPOTHESIS,
    "greater": "the distribution function of the first sample is nowhere above the second's",
    "less": "the distribution function of the first sample is nowhere below the second's",
}


@declare_level("valid", measured="'kuiper' beyond 400 rows, 'cvm' and 'wasserstein'")
def ks_1samp(
    x: Any,
    cdf: Any,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    statistic: Offered[OneSampleStatistic] = "ks",
    alternative: Offered[Alternative] = "two-sided",
    mechanism: Mechanism = "auto",
    bounds: Bounds = None,
    grid: Offered[Grid] = None,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether a sample comes from a given distribution.

    Parameters
    ----------
    x : array, series or table of one column
        The sample.
    cdf : callable, frozen scipy distribution, str or (str, parameters)
        The distribution function: of an array of any length, value by value, errors included
        (a value on which it fails counts as 1/2); ``scipy.stats.norm(0, 1)``;
        ``"norm(0, 1)"``, ``"gamma(a=2, scale=3)"``; or ``("norm", (0, 1))``. It is checked on
        public numbers before the data is read. It may have jumps.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision.
    statistic : {"ks", "kuiper", "cvm", "wasserstein"}
        Distance T between the empirical and the given distribution function: largest difference;
        largest plus smallest; root of the mean square (Cramér-von Mises); mean absolute.
    alternative : {"two-sided", "greater", "less"}
        For "ks", as in SciPy: greater: the distribution function of x lies above ``cdf``
        somewhere (x tends to smaller values there); less: below.
    mechanism : {"auto", "tulap", "laplace"}
        The noise. "auto" is Tulap, or Laplace where epsilon >= 4.16 and delta = 0.
    bounds : None, pair or Schema
        Not needed. A schema checks and clips values and says how many rows a person may have.
    grid : None, int, array or "exact"
        Public cut points, or a number of equal cells between the bounds, at most 8192: only the
        cell of a value counts, and data is read once, without sorting it. None and "exact" take
        the values as they are.
    rng : None, int or Generator
        Public randomness, for values where the distribution function jumps and for clipped ones.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        With the private distance and its p-value.

    Notes
    -----
    **Sensitivity** 1/n, times the rows of a person, for every statistic, ties included.
    Proof: docs/proofs/ks-type.md.

    **Privacy** n T in steps of 2^-20 is released with noise at (epsilon, delta); the p-value
    follows from it by the law of T. This holds if ``cdf`` evaluates each value on its own.

    **Validity** Each value becomes u, uniform between the left limit of the cdf there and the
    cdf, so that u is uniform under the null hypothesis, with or without jumps and clipping. KS and
    Kuiper laws are exact for n <= 1000 and n <= 400; otherwise, and for the others, a bound on
    the law's error is added to the p-value. The one-sided tests keep their level whenever the
    distribution function lies nowhere above ("greater") or below ("less") the given one. With a
    grid u is uniform between the values of the cdf at the ends of a cell; for KS and Kuiper of
    more than 4,194,304 rows distances are measured at the ends of cells only, and p-values are
    too large: a level of .05 is .044 for 1024 cells that are equally likely, .022 for 16.

    References
    ----------
    Awan and Wang (2022), "Differentially private Kolmogorov-Smirnov-type tests".

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_cauchy(2000)
    >>> ks_1samp(x, "norm(0, 1)", epsilon=1).reject
    True
    """
    budget = Budget(epsilon, delta)
    alpha = number("alpha", alpha, above=0, below=1)
    one_of("statistic", statistic, ONE_SAMPLE_STATISTICS)
    one_of("alternative", alternative, ALTERNATIVES)
    if alternative != "two-sided" and statistic != "ks":
        raise ParameterError("alternative must be 'two-sided' unless statistic='ks'.")
    one_of("mechanism", mechanism, MECHANISMS)
    generator, source = public_generator(rng), noise_source(noise)
    reference = read_cdf(cdf)
    checked = read_grid(grid)
    sample = encode_one_column(x, bounds, units="own")
    n = len(sample)
    cuts = _cuts(checked, sample)
    if cuts is None:
        u = _probabilities(sample, reference, generator, source)
        distance = one_sample(u, statistic, alternative)
    else:
        labelled = n <= LABELLED_ROWS or statistic not in ("ks", "kuiper")
        labels = _labels(n, generator, source) if labelled else None
        (counts,), at_cuts = counts_of((sample,), cuts), reference.at(cuts)
        distance = one_sample_counts(counts, at_cuts, statistic, labels, alternative)
    return lattice_outcome(
        on_lattice(distance),
        one_sample_null(n, statistic, one_sided=alternative != "two-sided"),
        rows_per_person=rows_of_a_person(sample),
        mechanism=mechanism,
        budget=budget,
        alpha=alpha,
        noise=source,
        facts={
            "adjacency": "one",
            "method_id": f"ks_1samp/{statistic}",
            "method": f"one-sample {_NAMES[statistic]} test",
            "null_hypothesis": f"{_ONE_SAMPLE_NULLS[alternative]} {reference.name}",
            "sizes": {"n": n},
            "parameters": {
                "statistic": statistic,
                "alternative": alternative,
                "distribution": reference.name,
                **({} if cuts is None else {"grid": len(cuts) + 1}),
            },
            "rows_per_person": sample.rows_per_person,
        },
    )


def _cuts(grid: CheckedGrid, sample: Sample) -> Floats | None:
    """Return public cut points, if there are any."""
    if grid is None or isinstance(grid, str):
        return None
    return cut_points(grid, float(sample.box.lower[0]), float(sample.box.upper[0]))


def _labels(count: int, rng: np.random.Generator, noise: NoiseSource) -> Floats:
    """Draw a label for each record.

    Labels are public randomness, but which record gets which label is secret: otherwise the
    order of rows, which may depend on values, would link labels to values.
    """
    return rng.random(count)[noise.permutation(count)]


def _probabilities(
    sample: Sample,
    reference: ReferenceCdf,
    rng: np.random.Generator,
    noise: NoiseSource,
) -> Floats:
    """Return u between F(x-) and F(x), by a label for each record."""
    values, box = sample.values, sample.box
    left, right = reference.limits(values)
    # all values that were clipped to a bound share what lies beyond it
    left[values == box.lower[0]] = 0.0
    right[values == box.upper[0]] = 1.0
    labels = _labels(len(values), rng, noise)
    return np.asarray(np.clip(left + (right - left) * labels, 0.0, 1.0))


@declare_level("valid", measured="n m > 4,000,000 with n ≠ m")
def ks_2samp(
    x: Any,
    y: Any = None,
    *,
    group: str | None = None,
    groups: Sequence[Category] | None = None,
    columns: str | Sequence[str] | None = None,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    statistic: TwoSampleStatistic = "ks",
    alternative: Offered[Alternative] = "two-sided",
    adjacency: Adjacency | None = None,
    bounds: Bounds = None,
    grid: Offered[Grid] = None,
    n_permutations: Annotated[int, Option("permutations")] = 999,
    mechanism: Mechanism = "auto",
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two samples of one variable come from the same distribution.

    Only the order of the values counts, so that neither bounds nor a scale are needed, and
    heavy tails do no harm.

    Parameters
    ----------
    x, y : array, series or table of one column
        The two samples.
    group, groups, columns
        Where x is one frame, how it is split and compared: as in :func:`privatest.mmd_test`.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision.
    statistic : {"ks", "kuiper"}
        Largest difference of the empirical distribution functions, best for a shift; or largest
        plus smallest (in absolute value), best for scale and shape.
    alternative : {"two-sided", "greater", "less"}
        For "ks", as in SciPy: greater: the distribution function of x lies above that of y
        somewhere (x tends to smaller values there); less: below.
    adjacency : {"one", "both", "row"}, optional
        What is hidden: one record within its group, one in each group, or a record together
        with its group, so that group sizes are private. By default "one" for samples, and "row"
        for a frame, as in :func:`mmd_test`.
    bounds : None, pair or Schema
        Not needed. A schema checks and clips values and says how many rows a person may have.
    grid : None, int, array or "exact"
        Public cut points, or a number of equal cells between the bounds, at most 8192: only the
        cell of a value counts, and data is read once, without sorting it. By default all values
        are compared; but of more than 16,384 rows whose groups are private and permuted, those
        at 1024 ranks are, unless it is "exact".
    n_permutations : int
        Number of permutations; for ``adjacency="row"`` only.
    mechanism : {"auto", "tulap", "laplace"}
        The noise. "auto" is Tulap, or Laplace where epsilon >= 4.16, delta = 0 and the distance
        has steps finer than half its sensitivity (not for n = m or m = 2n).
    rng : None, int or Generator
        Public randomness, for permutations.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        With the private distance and its p-value; for "row" the p-value alone.

    Notes
    -----
    The one-sided tests keep their level whenever the distribution function of x lies nowhere
    above ("greater") or below ("less") that of y; for "row" where the two are equal.

    With a grid values of one cell are ties. Up to 4,194,304 rows they are put in a secret random
    order, and p-values are as exact as without a grid; beyond, distances are measured at the ends
    of cells only, and p-values are too large: a level of .05 is .044 for 1024 cells that are
    equally likely, .022 for 16.

    Ties are broken at random, in secret, so that the law of the distance under the null
    hypothesis is that of continuous data (for "row" permutations take care of ties). The distance
    is then a little larger than that of the two distribution functions.

    **Sensitivity** 1/min(n, m) for "one", 1/n + 1/m for "both", times the rows of a person;
    attained. "row": (N-1)/N² observed and twice that permuted, for (n m/N²) times the distance;
    1/N both where labels are swapped in pairs (``relabel`` of :func:`mmd_test`, as "auto").
    Proof: docs/proofs/ks-type.md and docs/proofs/private-groups.md.

    **Privacy** n m times the distance, an integer, is released with noise at (epsilon, delta);
    the p-value follows from it by the exact law.
    "row": the p-value (a multiple of 1/10,000) of the smoothed permutation test is released.

    References
    ----------
    Awan and Wang (2022), "Differentially private Kolmogorov-Smirnov-type tests".

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.standard_normal(2000), rng.standard_cauchy(1500)
    >>> ks_2samp(x, y, statistic="kuiper", epsilon=1).reject
    True
    """
    budget = Budget(epsilon, delta)
    alpha = number("alpha", alpha, above=0, below=1)
    one_of("statistic", statistic, TWO_SAMPLE_STATISTICS)
    one_of("alternative", alternative, ALTERNATIVES)
    if alternative != "two-sided" and statistic != "ks":
        raise ParameterError("alternative must be 'two-sided' for statistic='kuiper'.")
    layout = resolve_samples((x, y), bounds, adjacency, group=group, groups=groups, columns=columns)
    adjacency = layout.adjacency
    one_of("mechanism", mechanism, MECHANISMS)
    n_permutations = integer_at_least("n_permutations", n_permutations, 1)
    if adjacency == "row" and mechanism != "auto":
        raise ParameterError("mechanism must be 'auto' for adjacency='row', a permutation test.")
    checked = read_grid(grid)
    generator, source = public_generator(rng), noise_source(noise)
    data, bounds = layout.read((x, y))
    samples = encode_samples(data[0], data[1], bounds, units="own", adjacency=adjacency)
    if samples.domain.levels != (0,):
        raise DataError("x and y must have one numeric column: their values are ranked.")
    check_sizes(samples, adjacency)
    parameters: dict[str, Any] = {"statistic": statistic, "alternative": alternative}
    facts = {
        "adjacency": adjacency,
        "method_id": f"ks_2samp/{statistic}",
        "method": f"two-sample {_NAMES[statistic]} test",
        "null_hypothesis": _TWO_SAMPLE_NULLS[alternative],
        "sizes": shown_sizes(samples, adjacency),
        "parameters": parameters,
        "rows_per_person": samples.rows_per_person,
    }
    common: dict[str, Any] = {"budget": budget, "alpha": alpha, "noise": source, "facts": facts}
    cuts = _cuts(checked, samples.x)
    if cuts is not None:
        parameters["grid"] = len(cuts) + 1
    if adjacency == "row":
        exact = isinstance(checked, str)
        return _private_groups_outcome(
            samples, statistic, alternative, n_permutations, generator, common, cuts, exact=exact
        )
    n, m, one_sided = len(samples.x), len(samples.y), alternative != "two-sided"
    return lattice_outcome(
        _distance(samples, statistic, alternative, cuts, source),
        two_sample_null(n, m, statistic, adjacency, one_sided=one_sided),
        rows_per_person=samples.rows_per_person,
        mechanism=mechanism,
        **common,
    )


def _distance(
    samples: TwoSamples,
    statistic: TwoSampleStatistic,
    alternative: Alternative,
    cuts: Floats | None,
    noise: NoiseSource,
) -> int:
    """Return n m T of public groups, ties and cells in a secret order."""
    total = len(samples.x) + len(samples.y)
    if cuts is not None:
        labels = noise.permutation(total) if total <= LABELLED_ROWS else None
        of_x, of_y = counts_of(samples, cuts)
        return two_sample_counts(of_x, of_y, statistic, labels, alternative)
    if are_far(total, noise):
        return far_two_sample(samples.x, samples.y, statistic, noise, alternative)
    x, y = parallel(lambda sample: sample.values, samples, total)
    if total <= _WHOLE_ROWS or noise.constant_time:  # the time of the other way follows from values
        x, y = parallel(np.sort, (x, y), total)  # for speed: any order would do
        return two_sample(x, y, statistic, noise.permutation(total), alternative)
    return two_sample_cells(x, y, statistic, noise.permutation, alternative)


def _private_groups_outcome(
    samples: TwoSamples,
    statistic: TwoSampleStatistic,
    alternative: Alternative,
    n_permutations: int,
    rng: np.random.Generator,
    common: dict[str, Any],
    cuts: Floats | None,
    *,
    exact: bool,
) -> Outcome:
    """Permute the groups: their sizes are private, and so is any law that depends on them.

    ``cuts`` are public cut points. Without them values are compared at all of them, or at ranks
    where that would take long, unless it is to be ``exact``.
    """
    total, persons = len(samples.x) + len(samples.y), samples.rows_per_person
    swap = swaps_labels("auto", total, persons, common["budget"].pure_epsilon, "pvalue")
    parameters = common["facts"]["parameters"]
    parameters |= {"n_permutations": n_permutations, "relabel": "swap" if swap else "permute"}
    sides: dict[Alternative, LineKind] = {"greater": "above", "less": "below"}
    one_sided = sides.get(alternative, "kolmogorov")
    kind: LineKind = "kuiper" if statistic == "kuiper" else one_sided
    ranked = cuts is None and not exact and not swap and total > EXACT_ROWS
    if ranked:
        parameters["rank_cells"] = RANK_CELLS
    if swap and cuts is not None:  # one pass
        sensitivity, place = pair_swaps_sensitivity(1.0, total), partial(_place, cuts, kind)
        swaps = pair_swaps(total, n_permutations, rng)
        values, errors = streamed_cells(swaps, samples, place, common["noise"])
    else:
        rows, labels = labelled_rows(samples.x.rows, samples.y.rows, common["noise"])
        sensitivity, values, errors = _permuted_statistics(
            rows[:, 0], labels, kind, cuts, n_permutations, rng, swap=swap, ranked=ranked
        )
    bound = (sensitivity * persons).widened(float(errors[0]))
    result = permutation_result(values[0], sensitivity=bound, release="pvalue", **common)
    assert isinstance(result, Outcome)  # what release="pvalue" gives
    return result


def _place(cuts: Floats, kind: LineKind, rows: Floats) -> PlacedLine:
    return cut_cells(rows[:, 0], cuts, kind)


def _permuted_statistics(
    line: Floats,
    labels: Floats,
    kind: LineKind,
    cuts: Floats | None,
    n_permutations: int,
    rng: np.random.Generator,
    *,
    swap: bool,
    ranked: bool,
) -> tuple[PermutationSensitivity, Floats, Floats]:
    """Return the sensitivity, the statistics, and a bound on their rounding errors."""
    bound = pair_swaps_sensitivity if swap else private_groups_sensitivity
    sensitivity, draw = bound(1.0, len(line)), pair_swaps if swap else block_permutation
    relabelling = draw(len(line), n_permutations, rng)
    if ranked:
        cells = rank_cells(line, RANK_CELLS, kind)
        sensitivity = rank_cells_sensitivity(kind, len(line))
        return sensitivity, *permuted_cells(relabelling, [cells], labels)
    if cuts is not None:
        return sensitivity, *permuted_cells(relabelling, [cut_cells(line, cuts, kind)], labels)
    # ranks have the same order and the same ties as the values, and cannot overflow
    _, ranks = np.unique(line, return_inverse=True)
    metric = LineMetric(np.ones((1, 1)), kind, 1.0)
    rows = ranks.reshape(-1, 1).astype(np.float64)
    return sensitivity, *permuted_distance(relabelling, rows, labels, metric)


# --- Descriptors --------------------------------------------------------------------------------


DESCRIPTORS = (
    Method(
        name="ks",
        question="two-sample",
        function=ks_2samp,
        about="one column, exact p-values",
        aliases=("ks_2samp", "kstest"),
        preset={"statistic": "ks"},
        columns="one numeric",
        unbounded=True,
        sentence=f"We used the private two-sample Kolmogorov–Smirnov test; {EXACT}",
        papers=("awan2022",),
    ),
    Method(
        name="kuiper",
        question="two-sample",
        function=ks_2samp,
        about="one column, exact p-values",
        preset={"statistic": "kuiper"},
        without=("alternative",),
        columns="one numeric",
        unbounded=True,
        sentence=f"We used the private two-sample Kuiper test; {EXACT}",
        papers=("awan2022",),
    ),
    Method(
        name="distribution",
        question="fit",
        function=ks_1samp,
        part="dist",
        sentence=(
            "We used the private one-sample test of Kolmogorov–Smirnov type against a given "
            f"distribution; {EXACT}"
        ),
        papers=("awan2022",),
    ),
)
