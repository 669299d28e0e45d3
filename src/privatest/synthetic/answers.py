"""Estimates from a release, with error bars for the privacy noise.

Every answer is a smooth function of means, which moves with the noise as the mean of its influence
function does. A :class:`MeanSource` estimates means of functions over the private rows; everything
here is post-processing of what was released. Proof: docs/proofs/synthetic.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.privacy import Budget
from privatest.core.results import EqualByValue, privacy_sentence, read_only
from privatest.data.schema import Schema
from privatest.numerics.kernels import Kernel

Floats = NDArray[np.float64]
Columns = Mapping[str, NDArray[Any]]
Function = Callable[[Columns], Any]
Jumps = Mapping[str, Iterable[float]]
"""Numbers at which a function may jump, by column."""
Interval = tuple[float, float]
Progress = Callable[[float], None]
"""Called with the fraction of the work that is done, from 0 to 1."""

Z = 1.959964
_ONE_SIDED = 1.644853
_LEVEL = 0.95
_NEARLY_EXACT = 3.0  # standard errors, to say that a quantile is known exactly
_FEW = 4.0  # a share or a spread must be this many of its errors to divide by it
_EVEN, _CLOSE = 21, 41  # thresholds over the bounds, and around the quantile
_SMALL = 0.9  # a bar holds to the nominal level if the unseen part is below this much noise
_MOST = 0.95  # fraction of an error bar: the misfit is then three times the noise
_SMALLEST_TOTAL = 0.1  # sum of the weights below which a mean would be a quotient of noise
_ROUNDING = 1e-9  # error of a sum of weights
_EXPLAINED = 2.0  # standard errors that a difference may have by noise alone

_COUNTS = "the limits are where noisy counts allow it; the value follows all tables"
_HIDDEN = "too few rows satisfy the condition: the privacy noise hides them"
_SPREAD = "the privacy noise hides how widely these columns vary"


@dataclass(frozen=True, slots=True, eq=False)
class Estimate(EqualByValue):
    """An estimate with its error bar, or without one and the reason why.

    Attributes
    ----------
    value : float
        The estimate.
    error : float
        One standard deviation of the error due to privacy noise, a little more where the rows
        leave something open: value ± 1.96 error covers the private rows' own value with
        probability .95. NaN if there is no such bar.
    misfit : float
        Error because the rows represent the data badly: a bound on it where coefficients were
        measured, else as far as the release itself shows it.
    sampling : float
        One standard deviation of the error because the private rows are a sample: not part of
        ``error``. About the population, add both in quadrature.
    limits : (float, float) or None
        If there is no bar: the value lies between these with probability .95 or more, whatever
        the data; often much more.
    reason : str
        If there is no bar: why.
    """

    value: float
    error: float
    misfit: float = 0.0
    sampling: float = math.nan
    limits: Interval | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        """Give a reason where there is no bar and none was given."""
        if math.isnan(self.error) and not self.reason:
            object.__setattr__(self, "reason", "nothing was measured that tells how exact this is")

    def __float__(self) -> float:
        """Return the value."""
        return self.value

    @property
    def poor(self) -> bool:
        """Whether most of the bar is misfit: the rows cannot represent the data."""
        return self.misfit > _MOST * self.error

    @property
    def total(self) -> float:
        """One standard deviation about the population: noise and sampling error together."""
        return math.hypot(self.error, self.sampling)

    def to_dict(self) -> dict[str, Any]:
        """Return the parts as JSON has them; what is missing is None."""
        return {
            "value": _finite(self.value),
            "error": _finite(self.error),
            "sampling": _finite(self.sampling),
            "limits": None if self.limits is None else list(self.limits),
            "reason": self.reason or None,
            "misfit": _finite(self.misfit),
            "poor": bool(self.poor),
        }

    def __str__(self) -> str:
        """Return the value with its error, both to the significant digits."""
        if self.limits is not None:
            low, high = self.limits
            digits = _digits((high - low) / 4)
            text = f"{self.value:.{digits}f} (no bar; between {low:.{digits}f} and "
            return f"{text}{high:.{digits}f})"
        if self.reason:
            return f"{self.value:.3g} (no bar)"
        warning = " (poorly represented)" * self.poor
        if self.error <= 0 or not math.isfinite(self.error):
            return f"{self.value:.6g} ± {self.error:g}{warning}"
        digits = _digits(self.error)
        text = f"{self.value:.{digits}f} ± {self.error:.{digits}f}{warning}"
        if math.isfinite(self.sampling):
            text += f" (sampling ± {self.sampling:.2g})"
        return text


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _digits(error: float) -> int:
    """Return how many decimals show two digits of an error."""
    return max(0, 1 - math.floor(math.log10(error))) if error > 0 else 6


def no_estimate(value: float, reason: str, bounds: Interval | None) -> Estimate:
    """Return a value of which only the possible range is known."""
    return Estimate(value, math.nan, math.nan, math.nan, bounds, reason)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is public about a release.

    Attributes
    ----------
    n : int
        Number of private rows.
    spent : Budget
        What the release cost.
    method : str
        The algorithm and the kernel, in words.
    kernel : Kernel or None
        The kernel on encoded rows; None after :meth:`SyntheticData.transform`.
    schema : Schema or None
        The description of the columns; None for numbers without bounds.
    unit : str
        What is hidden: a row, or a person with at most k rows.
    sigma : float
        Standard deviation of the noise in each coefficient.
    parameters : mapping
        Other public parameters.
    simulated : bool
        True if the noise came from a seeded generator: no privacy.
    starts : mapping of str to tuple of float
        Where cells begin, of columns whose bins were bought with a share of the budget.
    """

    n: int
    spent: Budget
    method: str
    kernel: Kernel | None
    schema: Schema | None = None
    unit: str = "row"
    sigma: float = 0.0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    simulated: bool = False
    starts: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def guarantee(self) -> str:
        """The sentence on privacy."""
        return privacy_sentence(self.spent, self.unit, self.simulated, what="release")

    @property
    def rows_per_person(self) -> int:
        """The most rows of a person, as declared."""
        return self.schema.rows_per_person if self.schema is not None else 1


# --- estimates from weights and simulated draws of them ------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Weighting:
    """Weights of the rows, and simulated draws of them (rows × draws)."""

    weights: Floats
    draws: Floats

    def __post_init__(self) -> None:
        """Freeze copies."""
        for name in ("weights", "draws"):
            array = np.asarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, read_only(array))

    @classmethod
    def from_columns(cls, matrix: Floats) -> Weighting:
        """Split a matrix: the weights are the first column, draws the others."""
        return cls(matrix[:, 0], matrix[:, 1:])

    @property
    def fits(self) -> bool:
        """Whether the shapes agree and all values are finite."""
        finite = np.isfinite(self.weights).all() and np.isfinite(self.draws).all()
        return bool(self.draws.shape[:1] == self.weights.shape and finite)


def check_total(weights: Floats) -> None:
    """Refuse weights that nearly cancel."""
    if float(weights.sum()) < _SMALLEST_TOTAL:
        raise DataError(
            "the weights nearly cancel: there is more noise than signal. Use nonnegative(), "
            "or release with fewer points, more rows or a larger epsilon."
        )


def mean_estimate(
    values: Floats, used: Weighting, before: Weighting | None = None, width: float | None = None
) -> Estimate:
    """Return the weighted mean of one value per row.

    The noise is that of the mean of (values - estimate): to first order this is the quotient,
    and no draw is divided by its own sum, which may be near 0. ``before`` are signed weights of
    the same rows, if ``used`` are not signed; ``width`` is that of the range of possible values,
    by default that of the given ones.
    """
    width = float(np.ptp(values)) if width is None else width
    total = float(used.weights.sum())
    value = float(values @ used.weights) / total
    centred = values - value
    noise = root_mean_square(centred @ used.draws / total)
    lost = _missing_mass(used if before is None else before) * width
    if before is None:
        return _estimate(value, noise, lost)
    distance = float(centred @ before.weights)
    free_noise = root_mean_square(centred @ before.draws - distance)
    return _estimate(value, noise, unexplained(distance, free_noise), lost)


def quantile_estimate(
    values: Floats, q: float, used: Weighting, before: Weighting | None = None, step: float = 0.0
) -> Estimate:
    """Return the ``q`` quantile: the smallest value with a cumulative weight of at least ``q``.

    The bar also covers the gap to the next rows with weight: the quantile may be anywhere in it.
    ``step`` is the spacing of the possible values, 1 for integers.
    """
    order = np.argsort(values, kind="stable")
    value, noise = _signed_quantile(values, order, q, used)
    differences = values[used.weights != 0] - value
    sides = (-differences[differences < 0], differences[differences > 0])
    gap = max((float(side.min()) for side in sides if side.size), default=0.0)
    noise = math.hypot(noise, max(gap - step, 0.0) / math.sqrt(12))
    share = _missing_mass(used if before is None else before)
    ends = [_signed_quantile(values, order, end, used)[0] for end in (q - share, q + share)]
    lost = max(abs(end - value) for end in ends)
    if before is None:
        return _estimate(value, noise, lost)
    other, free_noise = _signed_quantile(values, order, q, before)
    distance = max(abs(other - value) - gap, 0.0)  # within the gap the two agree
    return _estimate(value, noise, unexplained(distance, free_noise), lost)


def _missing_mass(free: Weighting) -> float:
    """Return by how much the sum of signed weights misses 1, beyond what noise explains.

    The mean of the constant function 1 is known to be 1. The points may miss the same fraction
    of any function's range.
    """
    missing = float(free.weights.sum()) - 1
    excess = unexplained(missing, root_mean_square(free.draws.sum(axis=0) - 1 - missing))
    return excess if excess > _ROUNDING else 0.0


def unexplained(difference: float, noise: float) -> float:
    """Return the part of a difference that noise (two standard errors) does not explain."""
    noise = 0.0 if math.isnan(noise) else noise
    return max(abs(difference) - _EXPLAINED * noise, 0.0)


def _estimate(value: float, noise: float, *misfits: float) -> Estimate:
    misfit = math.hypot(*misfits)
    return Estimate(value, math.hypot(noise, misfit), misfit)


def root_mean_square(errors: Floats) -> float:
    """Return the root mean square; NaN if there are no draws."""
    return math.sqrt(float(np.mean(errors**2))) if errors.size else math.nan


def _signed_quantile(
    values: Floats, order: NDArray[np.intp], q: float, used: Weighting
) -> tuple[float, float]:
    """Return the quantile and its standard deviation under noise.

    Cumulative sums of signed weights may fall again. The nearest non-decreasing curve then
    replaces them: the first crossing would come too early.
    """
    from scipy.optimize import isotonic_regression  # noqa: PLC0415

    ordered = values[order]
    quantiles = []
    for shares in np.cumsum(np.column_stack([used.weights, used.draws])[order], axis=0).T:
        rising = shares if np.all(np.diff(shares) >= 0) else isotonic_regression(shares).x
        slack = 1e-12 * max(abs(float(shares[-1])), 1.0)
        place = int(np.searchsorted(rising, q * shares[-1] - slack))
        quantiles.append(ordered[min(place, len(shares) - 1)])
    return float(quantiles[0]), root_mean_square(np.array(quantiles[1:]) - quantiles[0])


# --- means of functions --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class MeanEstimates:
    """Estimates of several means.

    Attributes
    ----------
    values : ndarray
        One for each function.
    errors : ndarray
        Bars: value ± 1.96 error covers the mean over the private rows with probability .95 or
        more.
    noise : ndarray
        Standard deviation of the noise in each.
    unseen : ndarray
        Bound on the rest of the error: how far functions vary around synthetic rows.
    directions : ndarray
        Coefficients × functions: how each estimate moves with the noise.
    spreads : ndarray
        Standard deviations of the functions over the synthetic rows, for sampling errors.
    plain : ndarray
        The means over the synthetic rows alone: often near, with nothing to show for it.
    """

    values: Floats
    errors: Floats
    noise: Floats
    unseen: Floats
    directions: Floats
    spreads: Floats
    plain: Floats

    @property
    def has_bar(self) -> NDArray[np.bool_]:
        """Which errors are bars of noise: the rest adds so little that they cover 95% to 99%."""
        return is_noise(self.noise, self.unseen)

    def combined(
        self, join: Callable[..., Floats], other: Sequence[MeanEstimates]
    ) -> dict[str, Floats]:
        """Join each array but the directions with those of other estimates."""
        names = [each.name for each in fields(self) if each.name != "directions"]
        return {n: join(getattr(self, n), *(getattr(each, n) for each in other)) for n in names}


def is_noise(noise: Floats, unseen: Floats) -> NDArray[np.bool_]:
    """Return where the unseen part of an error is small against the noise."""
    return np.asarray(unseen <= _SMALL * noise + 1e-12)


class MeanSource:
    """What estimates means of functions over the private rows.

    Attributes
    ----------
    columns, weights
        The synthetic rows; their weights add up to 1.
    finest : str
        Why there is no bar where a function varies around rows.
    unmeasured : str
        Why there is not even a limit.
    additive : bool
        Whether functions of few columns are to be estimated one by one.
    """

    columns: Columns
    weights: Floats
    finest: str = ""
    unmeasured: str = ""
    additive: bool = False

    def means(
        self, function: Function | Sequence[Function], jumps: Jumps | None = None
    ) -> MeanEstimates:
        """Estimate the means of a function's columns, or of several functions.

        Parameters
        ----------
        function : callable, or several
            Maps columns to one number, or several, for each row.
        jumps : mapping of str to numbers, optional
            Where the function may jump, by column; None if that is not known.
        """
        raise NotImplementedError

    def edges(self, column: str, where: Function | None = None) -> Floats:
        """Return numbers up to which rows were counted, together with those of a condition."""
        del column, where
        return np.empty(0)


class WeightedRows(MeanSource):
    """Means by weights, with bars from draws: for releases that keep nothing else."""

    def __init__(self, columns: Columns, used: Weighting, before: Weighting | None) -> None:
        self.columns, self._used, self._before = columns, used, before
        self.weights = used.weights / used.weights.sum()

    def means(
        self, function: Function | Sequence[Function], jumps: Jumps | None = None
    ) -> MeanEstimates:
        """Estimate the means of a function's columns, or of several functions."""
        del jumps
        count = len(self.weights)
        functions = [function] if callable(function) else function
        arrays = [np.asarray(each(self.columns), dtype=np.float64).T for each in functions]
        shaped = [np.broadcast_to(each, (*each.shape[:-1], count)) for each in arrays]
        values = np.hstack([each.T.reshape(count, -1) for each in shaped])
        estimates = [mean_estimate(column, self._used, self._before) for column in values.T]
        centre = np.array([each.value for each in estimates])
        centred = (values - centre).T
        directions = (centred @ self._used.draws / self._used.weights.sum()).T
        errors = np.array([each.error for each in estimates])
        spreads = np.array([root_mean_square(each) for each in centred])
        unseen = np.zeros_like(errors)
        return MeanEstimates(centre, errors, errors, unseen, directions, spreads, centre)


def honest_error(noise: Floats, unseen: Floats) -> Floats:
    """Return e with: N(b, noise²) is within 1.96 e with probability .95, for all |b| <= unseen.

    Examples
    --------
    >>> honest_error(np.array([1.0, 1.0, 0.0]), np.array([0.0, 1.0, 1.96])).round(2).tolist()
    [1.0, 1.35, 1.0]
    """
    ratios, critical = _critical_values()
    scale = np.maximum(noise, 1e-300)
    ratio = np.minimum(unseen / scale, 1e12)
    high = np.where(ratio < ratios[-1], np.interp(ratio, ratios, critical), ratio + _ONE_SIDED)
    error: Floats = np.where(ratio < 1e11, high * scale, unseen) / Z
    return np.where((noise > 0) | (unseen > 0), error, 0.0)


@cache
def _critical_values() -> tuple[Floats, Floats]:
    """Return c with P(|N(b, 1)| <= c) = .95, for b from 0 to 4."""
    ratios, critical = np.linspace(0, 4, 81), []
    root = math.sqrt(2)
    for ratio in ratios:
        low, high = ratio + _ONE_SIDED, ratio + 1.97
        for _ in range(40):
            middle = (low + high) / 2
            inside = math.erf((middle - ratio) / root) + math.erf((middle + ratio) / root)
            low, high = (middle, high) if inside / 2 < _LEVEL else (low, middle)
        critical.append(high)
    return ratios, np.array(critical)


def normal_maximum(directions: Floats, seed: int = 0) -> float:
    """Return the .95 quantile of the largest |coordinate| of standardised u'N, for columns u."""
    covariance = directions.T @ directions
    sizes = np.sqrt(np.diag(covariance))
    moving = sizes > 0
    if not moving.any():
        return Z
    spectrum, vectors = np.linalg.eigh(
        covariance[np.ix_(moving, moving)] / np.outer(sizes[moving], sizes[moving])
    )
    root = vectors * np.sqrt(np.maximum(spectrum, 0.0))
    normal = np.random.default_rng(seed).normal(size=(20_000, int(moving.sum())))
    largest = np.abs(normal @ root.T).max(axis=1)
    return max(float(np.quantile(largest, _LEVEL)), Z)


def row_count(columns: Columns) -> int:
    """Return the number of rows without using a column."""
    count = getattr(columns, "rows", None)
    return len(next(iter(columns.values()))) if count is None else int(count)


def per_row(values: Any, columns: Columns) -> Floats:
    """Return one number for each row."""
    return np.broadcast_to(np.asarray(values, dtype=np.float64), (row_count(columns),))


# --- conditional means and groups ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Estimand:
    """What is to be estimated, from whatever source.

    Attributes
    ----------
    function : callable
        One number for each row.
    where : callable or None
        A condition on rows.
    jumps : mapping or None
        Numbers at which these may jump, by column; None if that is not known.
    people : float
        Number of independent people, for sampling errors.
    bounds : (float, float) or None
        Smallest and largest possible answer.
    """

    function: Function
    where: Function | None = None
    jumps: Jumps | None = None
    people: float = math.inf
    bounds: Interval | None = None


def estimate_mean(source: MeanSource, estimand: Estimand) -> Estimate:
    """Estimate a mean, of all rows or of those where a condition holds."""
    if estimand.where is not None:
        return _conditional_means(source, [estimand.where], estimand)[0][0]
    means = source.means(estimand.function, estimand.jumps)
    return _with_bars(source, means, means.values, means.plain, estimand)[0]


def estimate_groups(
    source: MeanSource, groups: Mapping[str, Function], estimand: Estimand
) -> dict[str, Estimate]:
    """Estimate a mean in each group; 95% is for all groups together."""
    where = estimand.where
    conditions = [
        group if where is None else (lambda columns, group=group: group(columns) & where(columns))
        for group in groups.values()
    ]
    estimates, directions = _conditional_means(source, conditions, estimand)
    factor = normal_maximum(directions) / Z
    low, high = estimand.bounds or (-math.inf, math.inf)
    widened = []
    for each in estimates:
        value, limits = each.value, each.limits
        if limits is not None and not math.isnan(value):
            below, above = factor * (value - limits[0]), factor * (limits[1] - value)
            limits = max(value - below, low), min(value + above, high)
        widened.append(replace(each, error=each.error * factor, limits=limits))
    return dict(zip(groups, widened, strict=True))


def _conditional_means(
    source: MeanSource, conditions: Sequence[Function], estimand: Estimand
) -> tuple[list[Estimate], Floats]:
    """Estimate means where conditions hold: 1(A)(f - v)/P(A) has mean 0 at the answer v."""

    def inside(columns: Columns) -> Floats:
        return np.column_stack([per_row(where(columns), columns) for where in conditions])

    shares = source.means(inside, estimand.jumps)
    at_rows = inside(source.columns)
    values = per_row(estimand.function(source.columns), source.columns)
    weight = np.maximum(source.weights @ at_rows, 1e-12)
    plain = (source.weights * values) @ at_rows / weight
    enough = shares.values > _FEW * shares.errors
    size = np.where(enough, shares.values, np.maximum(weight, 1e-3))

    def influence(columns: Columns) -> Floats:
        centred = per_row(estimand.function(columns), columns)[:, None] - plain
        return np.asarray(inside(columns) * centred / size, dtype=np.float64)

    means = source.means(influence, estimand.jumps)
    estimates = _with_bars(source, means, plain + means.values, plain, estimand)
    return [
        estimate if known else no_estimate(estimate.value, _HIDDEN, estimand.bounds)
        for estimate, known in zip(estimates, enough, strict=True)
    ], means.directions


def _with_bars(
    source: MeanSource, means: MeanEstimates, values: Floats, plain: Floats, estimand: Estimand
) -> list[Estimate]:
    """Return values with the bars of some means, or limits where there is none.

    Then the value is the ``plain`` one, of the synthetic rows: limits are about any data, and
    that of rows is right for smooth data.
    """
    low, high = estimand.bounds or (-math.inf, math.inf)
    estimates = []
    for index, exact in enumerate(values.tolist()):
        value = min(max(exact, low), high)
        error, unseen = float(means.errors[index]), float(means.unseen[index])
        sampling = float(means.spreads[index]) / math.sqrt(estimand.people)
        near = float(plain[index])
        if math.isinf(error):
            estimates.append(no_estimate(near, source.unmeasured, estimand.bounds))
        elif means.has_bar[index]:
            estimates.append(Estimate(value, error, unseen, sampling))
        else:
            limits = max(exact - Z * error, low), min(exact + Z * error, high)
            limits = min(limits[0], high), max(limits[1], low)
            near = min(max(near, limits[0]), limits[1])
            estimates.append(Estimate(near, math.nan, unseen, sampling, limits, source.finest))
    return estimates


# --- quantiles -----------------------------------------------------------------------------------


def estimate_quantile(source: MeanSource, column: str, q: float, estimand: Estimand) -> Estimate:
    """Estimate a quantile: the values x at which P(column <= x) may be ``q``."""
    values, bounds = source.columns[column].astype(np.float64), estimand.bounds
    whole = source.columns[column].dtype.kind in "biu"
    where = estimand.where
    weights = source.weights
    if where is not None:
        weights = weights * per_row(where(source.columns), source.columns)
    if weights.sum() <= 0:
        return no_estimate(math.nan, _HIDDEN, bounds)
    ends = bounds or (float(values.min()), float(values.max()))
    # a condition is about another column too: all pairs of their cells are looked at
    finer = 1 if where is None else 4
    edges = source.edges(column, where)
    thresholds = _thresholds(values, weights, q, ends, whole=whole, finer=finer)
    if source.additive:
        thresholds = _nearest_edges(thresholds, edges)
    else:
        thresholds = np.unique(np.concatenate([thresholds, edges]))

    def below(columns: Columns) -> Floats:
        share: Floats = (columns[column][:, None] <= thresholds).astype(np.float64) - q
        if where is not None:
            share = share * per_row(where(columns), columns)[:, None]
        return share

    means = source.means(below, estimand.jumps)
    low, high = _confidence_set(means, thresholds, Z, ends, whole=whole)
    if low == high:  # noise alone may make one value of several: ask for more certainty
        low, high = _confidence_set(means, thresholds, _NEARLY_EXACT, ends, whole=whole)
    value = float(_weighted_quantiles(values, weights, np.array([q]))[0])
    value = min(max(value, low), high)
    near = int(np.argmin(np.abs(thresholds - value)))
    spread = math.sqrt(q * (1 - q) / max(estimand.people * float(weights.sum()), 1.0))
    sides = _weighted_quantiles(values, weights, np.clip([q - spread, q + spread], 0.0, 1.0))
    sampling = float(sides[1] - sides[0]) / 2
    # the rows' quantile follows all tables, and is nearer than these counts can tell: as a bar
    # the interval covers .999 (benchmarks.release.coverage)
    longer = source.additive and high > low
    if means.has_bar[max(near - 1, 0) : near + 2].all() and not longer:
        return Estimate(value, max(high - value, value - low) / Z, sampling=sampling)
    reason = _COUNTS if longer else source.finest
    return Estimate(value, math.nan, math.nan, sampling, (low, high), reason)


def _confidence_set(
    means: MeanEstimates, thresholds: Floats, z: float, ends: Interval, *, whole: bool
) -> Interval:
    """Return where a quantile may be: from each end up to the first threshold not refused.

    Then a miss takes one error at the quantile itself, not one anywhere.
    """
    error = z * means.errors
    lowest = int(np.argmax(np.append(means.values + error >= 0, True)))
    highest = int(np.argmax(np.append(means.values[::-1] - error[::-1] < 0, True)))
    low, high = ends
    if lowest:
        low = max(low, float(thresholds[lowest - 1]) + whole)
    if highest:
        high = min(high, float(thresholds[len(thresholds) - highest]))
    return min(low, high), max(low, high)


def _thresholds(
    values: Floats, weights: Floats, q: float, ends: Interval, *, whole: bool, finer: int
) -> Floats:
    """Return where to estimate the distribution: evenly, and around the quantile."""
    low, high = ends
    even = np.linspace(low, high, _EVEN // finer)
    levels = np.clip(q + np.linspace(-0.3, 0.3, _CLOSE // finer), 0, 1)
    thresholds = np.concatenate([even, _weighted_quantiles(values, weights, levels)])
    if whole:
        if high - low < (_EVEN + _CLOSE) // finer:
            thresholds = np.arange(math.floor(low), math.ceil(high) + 1.0)
        thresholds = np.floor(thresholds)
    return np.unique(thresholds)


def _nearest_edges(thresholds: Floats, edges: Floats) -> Floats:
    """Move numbers to the nearest up to which rows were counted, if there are any."""
    if not len(edges):
        return thresholds
    above = np.searchsorted(edges, thresholds).clip(0, len(edges) - 1)
    below = (above - 1).clip(0)
    lower = thresholds - edges[below] < edges[above] - thresholds
    return np.unique(np.concatenate([edges[np.where(lower, below, above)], edges[below]]))


def _weighted_quantiles(values: Floats, weights: Floats, levels: Floats) -> Floats:
    order = np.argsort(values, kind="stable")
    shares = np.cumsum(weights[order])
    place = np.searchsorted(shares, levels * shares[-1] - 1e-12)
    return np.asarray(values[order][np.minimum(place, len(values) - 1)], dtype=np.float64)


# --- correlation and regression: functions of means of products ----------------------------------


def estimate_correlation(
    source: MeanSource, pair: Sequence[Function], estimand: Estimand
) -> Estimate:
    """Estimate the correlation of two functions of a row."""
    # standardised: then what is not known of means hardly matters
    pair = [_standardised(source, each, estimand.where)[0] for each in pair]
    powers = ((), (0,), (1,), (0, 0), (1, 1), (0, 1))
    moments = [_product([pair[i] for i in power], estimand.where) for power in powers]
    estimand = replace(estimand, bounds=(-1.0, 1.0))
    means = source.means(moments, estimand.jumps)
    if np.isinf(means.errors).any():
        return no_estimate(math.nan, source.unmeasured, estimand.bounds)
    m = means.plain / max(float(means.plain[0]), 1e-12)
    size = math.sqrt(max(float((m[3:5] - m[1:3] ** 2).prod()), 1e-300))
    plain = min(max(float(m[5] - m[1] * m[2]) / size, -1.0), 1.0)
    hidden = no_estimate(plain, _SPREAD, estimand.bounds)
    share, errors = float(means.values[0]), means.errors / max(means.values[0], 1e-12)
    m = means.values / max(share, 1e-12)
    variances = m[3:5] - m[1:3] ** 2
    if share <= _FEW * means.errors[0] or not (variances > 0).all():
        return hidden
    value = float(np.clip((m[5] - m[1] * m[2]) / math.sqrt(variances.prod()), -1, 1))
    if source.additive:
        unsure = np.hypot(errors[3:5], 2 * m[1:3] * errors[1:3])
        if (unsure > variances / _FEW).any():
            return hidden
    # the derivatives by the moments 1, x, y, xx, yy, xy
    slopes = np.zeros((6, 1))
    size = math.sqrt(variances.prod())
    slopes[1:3, 0] = -m[[2, 1]] / size + value * m[1:3] / variances
    slopes[3:5, 0] = -value / (2 * variances)
    slopes[5, 0] = 1 / size
    slopes[0] = -(m @ slopes)
    combined = _combine(source, moments, means, slopes / share, estimand)
    if not source.additive:  # the derivatives of the logarithms of both variances
        slopes = np.zeros((6, 2))
        for i in range(2):
            slopes[1 + i, i] = -2 * m[1 + i] / variances[i]
            slopes[3 + i, i] = 1 / variances[i]
        slopes[0] = -(m @ slopes)
        if _combine(source, moments, means, slopes / share, estimand).errors.max() > 1 / _FEW:
            return hidden
    return _with_bars(source, combined, np.array([value]), np.array([plain]), estimand)[0]


def estimate_regression(
    source: MeanSource, predictors: Mapping[str, Function], estimand: Estimand
) -> dict[str, Estimate]:
    """Estimate the coefficients of a least-squares regression, the intercept first."""
    names = ["intercept", *predictors]
    k = len(names)
    centre, scale = np.zeros(k), np.ones(k)
    parts: list[Function] = [lambda columns: per_row(1.0, columns)]
    for place, (name, function) in enumerate(predictors.items(), start=1):
        part, centre[place], scale[place] = _standardised(source, function, estimand.where)
        if scale[place] == 0:
            raise ParameterError(f"{name} must take at least two values in the release.")
        parts.append(part)
    if source.additive and estimand.jumps is not None:  # squares turn at the centres
        turns = {n: [*estimand.jumps.get(n, ()), at] for n, at in zip(names, centre, strict=True)}
        estimand = replace(estimand, jumps={**estimand.jumps, **turns})
    pairs = [(i, j) for i in range(k) for j in range(i, k)]
    moments = [_product([parts[i], parts[j]], estimand.where) for i, j in pairs]
    moments += [_product([part, estimand.function], estimand.where) for part in parts]
    means = source.means(moments, estimand.jumps)
    if np.isinf(means.errors).any():
        return {name: no_estimate(math.nan, source.unmeasured, None) for name in names}
    back = np.diag(1 / scale)  # to the columns' own units
    back[0, 1:] = -centre[1:] / scale[1:]
    square, unsure, rows = np.zeros((3, k, k))
    for values, matrix in ((means.values, square), (means.errors, unsure), (means.plain, rows)):
        for (i, j), value in zip(pairs, values, strict=False):
            matrix[i, j] = matrix[j, i] = value
    near = back @ np.linalg.lstsq(rows, means.plain[len(pairs) :])[0]
    if np.linalg.eigvalsh(square)[0] <= _FEW / 2 * np.linalg.norm(unsure, 2):
        plain = zip(names, near.tolist(), strict=True)
        return {name: no_estimate(value, _SPREAD, None) for name, value in plain}
    inverse = np.linalg.inv(square)
    slopes = inverse @ means.values[len(pairs) :]
    turned = back @ inverse
    derivatives = np.zeros((len(moments), k))
    for place, (i, j) in enumerate(pairs):
        derivatives[place] = -turned[:, i] * slopes[j] - (
            turned[:, j] * slopes[i] if i != j else 0.0
        )
    derivatives[len(pairs) :] = turned.T
    combined = _combine(source, moments, means, derivatives, estimand)
    estimates = _with_bars(source, combined, back @ slopes, near, estimand)
    return dict(zip(names, estimates, strict=True))


def _standardised(
    source: MeanSource, function: Function, where: Function | None
) -> tuple[Function, float, float]:
    """Return a function less its mean over the rows, in units of its spread, and both.

    The spread is 0 of a function that takes one value; it is then not divided.
    """
    columns = source.columns
    inside = np.ones(1) if where is None else where(columns)
    weights = source.weights * per_row(inside, columns)
    weights = weights / max(float(weights.sum()), 1e-12)
    values = per_row(function(columns), columns)
    centre = float(weights @ values)
    scale = math.sqrt(max(float(weights @ (values - centre) ** 2), 0.0))
    scale = scale if scale > 1e-9 * max(1.0, abs(centre)) else 0.0
    unit = scale or 1.0
    return lambda columns: (per_row(function(columns), columns) - centre) / unit, centre, scale


def _product(parts: Sequence[Function], where: Function | None) -> Function:
    """Return the product of some functions, 0 outside of a condition."""
    factors = [*parts] if where is None else [*parts, where]

    def product(columns: Columns) -> Floats:
        values = per_row(1.0, columns)
        for part in factors:
            values = values * per_row(part(columns), columns)
        return values

    return product


def _combine(
    source: MeanSource,
    moments: Sequence[Function],
    means: MeanEstimates,
    slopes: Floats,
    estimand: Estimand,
) -> MeanEstimates:
    """Return how combinations of moments (moments × combinations) move with the noise.

    Where a source knows functions of two columns only, the mean of a combination is put together
    from those of the products.
    """

    def influence(columns: Columns) -> Floats:
        values = np.column_stack([per_row(each(columns), columns) for each in moments])
        return np.asarray(values @ slopes, dtype=np.float64)

    if not source.additive:
        return source.means(influence, estimand.jumps)
    at_rows = influence(source.columns)
    spreads = np.sqrt(source.weights @ (at_rows - source.weights @ at_rows) ** 2)
    directions = means.directions @ slopes
    noise = np.sqrt(np.einsum("ij,ij->j", directions, directions))
    unseen = means.unseen @ np.abs(slopes)
    errors = honest_error(noise, unseen)
    values, plain = means.values @ slopes, means.plain @ slopes
    return MeanEstimates(values, errors, noise, unseen, directions, spreads, plain)
