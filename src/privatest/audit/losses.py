"""The privacy loss of a release on two neighbours: exact, and bounded from draws.

Laws of noise are known, so the loss needs no runs: closed forms for noise on numbers, and the
10,000 probabilities of a p-value. Losses of several mechanisms add up. Statistics of a permutation
test are distinct values with counts, so that many permutations cost no more than few. Grids of
floats are neglected: a relative error of 2^-30.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import MechanismCall, NoiseSource, SecureNoise
from privatest.core.privacy import gaussian_delta
from privatest.core.results import Decision
from privatest.mechanisms.additive import selection_weights
from privatest.mechanisms.permutation import (
    PVALUE_GRID,
    Release,
    on_steps,
    smoothed_decision,
    smoothed_pvalue,
)
from privatest.mechanisms.subsample import COIN

if TYPE_CHECKING:
    from privatest.audit.replay import PairResult

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PermutedStatistics:
    """The observed statistic, and permuted ones with how often each occurs."""

    observed: float
    values: Array
    counts: Array

    @classmethod
    def from_list(cls, statistics: Array) -> PermutedStatistics:
        """Return them from a list whose first entry is the observed one."""
        values, counts = np.unique(statistics[1:], return_counts=True)
        return cls(float(statistics[0]), values, counts.astype(float))

    def moved(self, observed: float, permuted: Array) -> PermutedStatistics:
        """Return those of a neighbour."""
        return PermutedStatistics(self.observed + observed, self.values + permuted, self.counts)

    def survival_mean(self, at: Array, scale: float) -> Array:
        """G: how likely noise lifts a statistic, taken at random, above each point."""
        values = np.append(self.values, self.observed)
        weights = np.append(self.counts, 1.0)
        tails: Array = (
            survival((np.asarray(at)[:, None] - values) / scale) @ weights / weights.sum()
        )
        return tails

    def quantiles(self, levels: Array, scale: float) -> Array:
        """Solve G(x) = level; infinite at levels 0 and 1.

        Between two neighbouring statistics the total of G is above - rising e^x/2 +
        falling e^-x/2, with a statistic as origin, so that e^x solves a quadratic equation.
        """
        values = np.append(self.values, self.observed)
        order = np.argsort(values)
        values, weights = values[order] / scale, np.append(self.counts, 1.0)[order]
        at_values = self.survival_mean(values * scale, scale)
        segment = np.searchsorted(-at_values, -levels, side="right")  # G is decreasing
        origins = values[np.maximum(segment - 1, 0)]
        below = np.arange(len(values)) < segment[:, None]
        decay = weights * np.exp(-np.abs(values - origins[:, None]))
        falling, rising = (decay * below).sum(axis=1), (decay * ~below).sum(axis=1)
        half = weights.sum() * levels - (weights * ~below).sum(axis=1)
        root = np.hypot(half, np.sqrt(falling * rising))
        with np.errstate(divide="ignore", invalid="ignore"):
            growth = np.where(half > 0, falling / (half + root), (root - half) / rising)
            found = scale * (origins + np.log(growth))
        result: Array = np.where(levels <= 0, np.inf, np.where(levels >= 1, -np.inf, found))
        return result

    def chances_below(self, levels: Array, scale: float) -> Array:
        """P(p-value <= level) for each level."""
        return survival((self.quantiles(levels, scale) - self.observed) / scale)


def survival(y: Array) -> Array:
    """P(Laplace(0, 1) > y)."""
    tail = 0.5 * np.exp(-np.abs(y))
    result: Array = np.where(y > 0, tail, 1 - tail)
    return result


def log_mass(low: Array, high: Array) -> Array:
    """Log P(low < Laplace(0, 1) < high), accurate in both tails."""
    # mirror intervals below 0, so that only those above 0 and those across it are left
    mirrored = high <= 0
    low, high = np.where(mirrored, -high, low), np.where(mirrored, -low, high)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        beyond = -low + np.log(-0.5 * np.expm1(low - high))
        across = np.log(-0.5 * np.expm1(low) - 0.5 * np.expm1(-high))
    result: Array = np.where(low >= 0, beyond, across)
    return result


def log_cells(statistics: PermutedStatistics, scale: float, grid: int, cells: Array) -> Array:
    """Log P(p-value = k/grid) for each k of ``cells``, the p-value being rounded up."""
    edges, places = np.unique(np.concatenate([cells, cells - 1]), return_inverse=True)
    at = statistics.quantiles(edges / grid, scale)[places]  # most edges are those of two cells
    lower, upper = np.split(at, 2)
    return log_mass((lower - statistics.observed) / scale, (upper - statistics.observed) / scale)


def pvalue_loss(
    first: PermutedStatistics, second: PermutedStatistics, scale: float, grid: int, cells: Array
) -> float:
    """Largest log-ratio of the probabilities of a p-value under the two."""
    difference = log_cells(first, scale, grid, cells) - log_cells(second, scale, grid, cells)
    return float(np.abs(difference).max())


def rejection(statistics: PermutedStatistics, scale: float, alpha: float) -> tuple[float, float]:
    """Log P(reject) and log P(do not reject)."""
    edge = (statistics.quantiles(np.array([alpha]), scale) - statistics.observed) / scale
    infinite = np.array([np.inf])
    return float(log_mass(edge, infinite)[0]), float(log_mass(-infinite, edge)[0])


def decision_loss(
    first: PermutedStatistics, second: PermutedStatistics, scale: float, alpha: float
) -> float:
    """Largest log-ratio of the probabilities of a decision under the two."""
    pairs = zip(rejection(first, scale, alpha), rejection(second, scale, alpha), strict=True)
    return max(abs(one - other) for one, other in pairs)


_CELLS = np.arange(1, PVALUE_GRID + 1, dtype=np.float64)
_ALL = np.array([np.inf])
_COUNTED = 50_000  # draws on either side
_DEVIATIONS, _RARE = 5.2, 12  # as Clopper and Pearson's limits at 2.5e-7, about
_LEVELS = np.concatenate([np.geomspace(0.002, 0.5, 40), 1 - np.geomspace(0.5, 0.002, 40)[1:]])


def exact_loss(
    first: Sequence[MechanismCall], second: Sequence[MechanismCall], delta: float
) -> float:
    """Return the epsilon, at ``delta``, that the mechanisms of a run lose on neighbours.

    Axes of a covariance have no closed form, and are left out: the value is a lower bound then.
    """
    pure, squares, last = 0.0, 0.0, None
    for place, (a, b) in enumerate(zip(first, second, strict=True)):
        if a.mechanism.startswith("gaussian"):
            squares += float(((a.values - b.values) ** 2).sum()) / a.scale**2
        elif a.mechanism == "one draw":
            if a.repeat is None or a.repeat is not last:
                pure += _one_draw(a, second[place])
            last = a.repeat
        else:
            pure += _pure(a, b)
    return _at(pure, delta if not squares else 0.0) + _gaussian(math.sqrt(squares), delta)


def visible_loss_of(
    first: Sequence[MechanismCall], second: Sequence[MechanismCall]
) -> float | None:
    """Return what draws would show of a smoothed p-value's loss; None for all else."""
    if len(first) != 1 or _function(first[0]) is not smoothed_pvalue:
        return None
    return visible_loss(_steps(first[0]), _steps(second[0]), first[0].scale)


def visible_loss(first: PermutedStatistics, second: PermutedStatistics, scale: float) -> float:
    """Return the bound on epsilon that 50,000 p-values of each are expected to prove."""
    p, q = (own.chances_below(_LEVELS, scale) for own in (first, second))
    return max(_bound(p, q), _bound(q, p), _bound(1 - p, 1 - q), _bound(1 - q, 1 - p), 0.0)


def _bound(often: Array, seldom: Array) -> float:
    rest, other = (np.sqrt(x * (1 - x) / _COUNTED) for x in (often, seldom))
    low = np.maximum(often - _DEVIATIONS * rest, 1e-300)
    high = seldom + _DEVIATIONS * other + _RARE / _COUNTED
    return float(np.log(low / high).max())


def _pure(a: MechanismCall, b: MechanismCall) -> float:
    if a.mechanism == "Tulap":  # a shift passes that many of its blocks
        return math.ceil(a.ratio(b) - 1e-12) / a.scale
    if a.mechanism == "smoothed permutation":
        return _smoothed(a, b)
    if a.mechanism == "flipped coins":
        return _coins(a, b)
    if a.mechanism == "axes":
        return 0.0
    if a.mechanism == "exponential":
        return _selection(a, b)
    return a.ratio(b) * a.bounds[0] / a.scale


def _selection(a: MechanismCall, b: MechanismCall) -> float:
    """Return the loss of the choice of a candidate, by the weights that it is drawn with."""
    logs = []
    for call in (a, b):
        arguments = _arguments(call)
        epsilon, sensitivity = arguments["budget"].pure_epsilon, arguments["sensitivity"]
        scores = arguments["scores"]
        weights = selection_weights(scores, sensitivity=sensitivity, epsilon=epsilon)
        masses = weights.astype(np.float64) * arguments["multiplicities"]
        logs.append(np.log(masses / masses.sum()))
    return float(np.abs(logs[0] - logs[1]).max())


def _at(pure: float, delta: float) -> float:
    """Return the epsilon at delta of the worst law with that pure loss."""
    if not delta or not pure:
        return pure
    if pure > 700.0:
        return pure
    rest = math.exp(pure) - delta * (math.exp(pure) + 1)
    return max(0.0, math.log(rest)) if rest > 0 else 0.0


def _gaussian(mu: float, delta: float) -> float:
    """Return the least epsilon at delta of Gaussian noise, for a shift of mu deviations."""
    if mu == 0.0:
        return 0.0
    if delta == 0.0:
        return math.inf
    low, high = 0.0, 1.0
    if gaussian_delta(1 / mu, low) <= delta:
        return 0.0
    while gaussian_delta(1 / mu, high) > delta:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(1 / mu, middle) > delta else (low, middle)
    return high


def _function(call: MechanismCall) -> object:
    return None if call.repeat is None else call.repeat.func


def _arguments(call: MechanismCall) -> dict[str, Any]:
    if call.repeat is None:
        raise AssertionError("a mechanism can be called again")
    return call.repeat.keywords


def _steps(call: MechanismCall) -> PermutedStatistics:
    """Return statistics as the mechanism has them: whole steps of its lattice, less a shift."""
    release: Release = "decision" if _function(call) is smoothed_decision else "pvalue"
    arguments = _arguments(call)
    budget, sensitivity = arguments["budget"], arguments["sensitivity"]
    points, _ = on_steps(call.values, sensitivity, budget.pure_epsilon, release)
    return PermutedStatistics.from_list(np.array(points, dtype=np.float64))


def _smoothed(a: MechanismCall, b: MechanismCall) -> float:
    first, second = _steps(a), _steps(b)
    if _function(a) is smoothed_decision:
        return decision_loss(first, second, a.scale, float(_arguments(a)["alpha"]))
    with np.errstate(invalid="ignore"):
        return pvalue_loss(first, second, a.scale, PVALUE_GRID, _CELLS)


def _one_draw(a: MechanismCall, b: MechanismCall) -> float:
    """Return the loss of a decision: the draw is above the smallest threshold, or it is not."""
    edges = []
    for call in (a, b):
        arguments = _arguments(call)
        level, found = arguments["alpha"], []
        for test in arguments["tests"]:
            epsilon = arguments["budget"].pure_epsilon
            points, scale = on_steps(test.statistics, test.sensitivity, epsilon, "decision")
            own = PermutedStatistics.from_list(np.array(points, dtype=np.float64))
            share = float(test.share * Fraction(level))
            found.append((own.quantiles(np.array([share]), scale)[0] - own.observed) / scale)
        edges.append(np.array([min(found)]))
    sides = [(log_mass(edge, _ALL), log_mass(-_ALL, edge)) for edge in edges]
    return float(max(abs(x - y)[0] for x, y in zip(*sides, strict=True)))


def _coins(a: MechanismCall, b: MechanismCall) -> float:
    """Return the loss of the majority of flipped coins."""
    flip, most = a.scale / COIN, len(a.values) // 2
    laws = []
    for call in (a, b):
        law = np.ones(1)
        for rejects in call.values:
            heads = 1 - flip if rejects else flip
            law = np.convolve(law, [1 - heads, heads])
        laws.append((law[: most + 1].sum(), law[most + 1 :].sum()))
    return float(max(abs(math.log(x / y)) for x, y in zip(*laws, strict=True)))


# A lower bound on epsilon from draws of the real noise. An event is chosen on one half of the runs
# and counted on the other. Clopper and Pearson's limits make the bound hold with the stated
# confidence, however the event was found. There are several looks, after which the runs double,
# each with its share of the error: a large violation is found early. Whole runs are slow, so most
# draws repeat only the mechanisms, with the test's own arguments and new secret noise.


FALSE_ALARM = 1e-6 / 4  # of each of the four attacks that throw dice
_LOOKS = 6
_THRESHOLDS = 64
_MOST_NUMBERS = 8
_LEAST_RUNS = 400
Sampler = Callable[[int], list[float]]  # from which neighbour to numbers


@dataclass(frozen=True, slots=True)
class LossBound:
    """What an attacker who knows both neighbours can say.

    Attributes
    ----------
    epsilon : float
        The test spends at least that, with confidence 1 - 2.5e-7; 0 says nothing.
    runs : int
        Of each neighbour, those with which the event was chosen included.
    event : str
        What was counted.
    """

    epsilon: float = 0.0
    runs: int = 0
    event: str = ""


def by_draws(
    found: PairResult,
    *,
    runs: int,
    delta: float,
    most: float,
    noise: Callable[[], NoiseSource] = SecureNoise,
) -> LossBound:
    """Call the mechanisms of a pair again, on the numbers that met their noise."""
    first, second = map(_distinct, found.calls)
    if not first:
        return LossBound()

    def sample(which: int) -> list[float]:
        outputs = [call.repeat(noise=noise()) for call in (first, second)[which] if call.repeat]
        numbers = [x for output in outputs for x in _flat(output)][:_MOST_NUMBERS]
        likelihood = sum(map(_likelihood, outputs, first, second))
        return [likelihood, *numbers, *np.diff(numbers)]

    # draws are what takes time: where a run has many of them there are fewer runs
    return bound_by_sampling(sample, runs=_fewer(runs, first), delta=delta, most=most)


def _fewer(runs: int, calls: Sequence[MechanismCall]) -> int:
    numbers = sum(m.values.size if m.norm not in ("permutation", "absolute") else 1 for m in calls)
    return max(min(runs, _LEAST_RUNS), runs // max(numbers, 1))


def by_bits(found: PairResult, *, runs: int, delta: float, most: float) -> LossBound:
    """Call the mechanisms of a pair again, and look at the low-order bits of what they give out."""
    sides = tuple(map(_distinct, found.calls))
    if not sides[0]:
        return LossBound()

    def sample(which: int) -> list[float]:
        outputs = [m.repeat(noise=SecureNoise()) for m in sides[which] if m.repeat]
        return [_fraction_bits(x) for output in outputs for x in _flat(output)][:_MOST_NUMBERS]

    return bound_by_sampling(sample, runs=_fewer(runs, sides[0]), delta=delta, most=most)


def _fraction_bits(number: float) -> float:
    """Return how many binary digits follow the point."""
    if not math.isfinite(number):
        return math.nan
    return float(number.as_integer_ratio()[1].bit_length() - 1)


def _distinct(calls: Sequence[MechanismCall]) -> list[MechanismCall]:
    """Return one record for each draw; axes are drawn inside of another mechanism."""
    found: list[MechanismCall] = []
    for call in calls:
        if call.repeat is None or call.mechanism == "axes":
            continue
        if not found or call.repeat is not found[-1].repeat:
            found.append(call)
    return found


def _likelihood(output: Any, first: MechanismCall, second: MechanismCall) -> float:
    """Return how much likelier an output is for the first, by the shape of the noise."""
    drawn = np.asarray(output, dtype=np.float64)
    if drawn.shape != first.values.shape:
        return 0.0

    def distance(own: MechanismCall) -> float:
        z = (drawn - own.values).ravel()
        if own.norm == "l2":
            return float((z**2).sum() / (2 * own.scale**2))
        norms = {
            "linf": np.abs(z).max(initial=0),
            "signed sums": max(np.maximum(z, 0).sum(), np.maximum(-z, 0).sum()),
        }
        return float(norms.get(own.norm, np.abs(z).sum()) / own.scale)

    return distance(second) - distance(first)


def bound_by_sampling(
    sample: Sampler, *, runs: int, delta: float, most: float, alarm: float = FALSE_ALARM
) -> LossBound:
    """Sample both neighbours, more and more often; stop when ``most`` is exceeded.

    Parameters
    ----------
    sample : callable
        From 0 or 1 to released numbers of that neighbour.
    runs : int
        The most runs of each.
    delta : float
        The delta of the test.
    most : float
        The epsilon that it claims: a bound above it ends the search.
    alarm : float
        Probability that any look is wrong.
    """
    outputs: tuple[list[list[float]], list[list[float]]] = ([], [])
    found = LossBound()
    for look in range(_LOOKS):
        wanted = max(2, runs >> (_LOOKS - 1 - look))
        for which, own in enumerate(outputs):
            while len(own) < wanted:
                own.append(sample(which))
        first, second = (np.array(own, dtype=np.float64) for own in outputs)
        found = _best(first, second, delta, alarm / _LOOKS)
        if found.epsilon > most:
            break
    return found


def released_numbers(result: Any) -> list[float]:
    """Return the released numbers of a result, in a fixed order."""
    if result is None:  # a refusal distinguishes neighbours too
        return [math.nan] * _MOST_NUMBERS
    if isinstance(result, Decision):
        names = ("reject", "pvalue", "statistic", "estimates")
        told: list[Any] = [getattr(result, name, None) for name in names]
    elif hasattr(result, "to_dict"):
        told = [v for v in result.to_dict().values() if not isinstance(v, (str, dict))]
    else:
        told = [result]
    numbers = [x for each in told for x in _flat(each)][:_MOST_NUMBERS]
    return numbers + [0.0] * (_MOST_NUMBERS - len(numbers)) + list(np.diff(numbers[:4]))


def _flat(value: Any) -> list[float]:
    try:
        return [float(x) for x in np.ravel(np.asarray(value, dtype=np.float64))[:_MOST_NUMBERS]]
    except (TypeError, ValueError):
        return []


def _best(
    first: NDArray[np.float64], second: NDArray[np.float64], delta: float, alarm: float
) -> LossBound:
    """Choose an event on the even runs, and bound epsilon with the odd ones."""
    best, chosen = 0.0, (0, 0.0, True, True)
    halves = first[::2], second[::2]
    for column in range(first.shape[1] if first.ndim == 2 else 0):
        both = np.concatenate([half[:, column] for half in halves])
        both = both[np.isfinite(both)]
        if not len(both):
            continue
        for threshold in np.unique(np.quantile(both, np.linspace(0, 1, _THRESHOLDS))):
            p, q = (_share(half[:, column], threshold) for half in halves)
            for above in (True, False):
                for forward in (True, False):
                    a, b = (p, q) if forward else (q, p)
                    a, b = (a, b) if above else (1 - a, 1 - b)
                    # by how much it would surely be, were it counted again: no luck of few runs
                    score = _sure(a, b, len(halves[0]), delta)
                    if score > best:
                        best, chosen = score, (column, float(threshold), above, forward)
    if best == 0.0:
        return LossBound(0.0, len(first))
    column, threshold, above, forward = chosen
    hits = [int(_holds(own[1::2][:, column], threshold, above).sum()) for own in (first, second)]
    often, seldom = hits if forward else hits[::-1]
    bound = lower_bound(often, seldom, len(first[1::2]), delta, alarm)
    words = f"number {column + 1} {'>=' if above else '<'} {threshold:.6g}"
    return LossBound(bound, len(first), words)


def _sure(often: float, seldom: float, runs: int, delta: float) -> float:
    """Return about what :func:`lower_bound` would: five standard deviations on either side."""
    low = often - 5 * math.sqrt(often * (1 - often) / runs) - delta
    high = seldom + 5 * math.sqrt(seldom * (1 - seldom) / runs) + 12 / runs
    return math.log(low / high) if low > 0 else -math.inf


def _holds(values: NDArray[np.float64], threshold: float, above: bool) -> NDArray[np.bool_]:
    return values >= threshold if above else ~(values >= threshold)


def _share(values: NDArray[np.float64], threshold: float) -> float:
    return float(_holds(values, threshold, True).mean())


def lower_bound(often: int, seldom: int, runs: int, delta: float, alarm: float) -> float:
    """Return the epsilon that counts of an event prove, with confidence 1 - ``alarm``.

    P <= e^epsilon Q + delta; P is bounded below and Q above, each with half of the alarm.
    """
    from scipy.special import betaincinv  # noqa: PLC0415

    beta: Callable[..., float] = betaincinv
    low = float(beta(often, runs - often + 1, alarm / 2)) if often else 0.0
    high = float(beta(seldom + 1, runs - seldom, 1 - alarm / 2)) if seldom < runs else 1.0
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0
