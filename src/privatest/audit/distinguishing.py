"""Tell neighbours apart by outputs: a lower bound on epsilon, from draws of the real noise.

An event is chosen on one half of the runs, and counted on the other. Clopper and Pearson's limits
make the bound hold with the stated confidence, however the event was found. There are several
looks, after which the runs double, each with its share of the error: a large violation is found
early.

Whole runs are slow, so most draws call only the mechanism again, on the numbers that the test had
brought to it: the same function with the same arguments and new secret noise. That attacks the
mechanism on the test's own numbers, by somebody who also knows the secret order of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import MechanismCall, NoiseSource, SecureNoise
from privatest.core.results import Decision

if TYPE_CHECKING:
    from privatest.audit.cases import Case
    from privatest.audit.neighbours import Pair
    from privatest.audit.replay import Replayed

__all__ = [
    "FALSE_ALARM",
    "Distinguished",
    "by_bits",
    "by_draws",
    "by_runs",
    "lower_bound",
    "released_numbers",
    "told_apart",
]

FALSE_ALARM = 1e-6 / 4  # of each of the four attacks that throw dice
_LOOKS = 6
_THRESHOLDS = 64
_MOST_NUMBERS = 8
_LEAST_RUNS = 400
Sampler = Callable[[int], list[float]]  # from which neighbour to numbers


@dataclass(frozen=True, slots=True)
class Distinguished:
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


def by_runs(case: Case, pair: Pair, *, runs: int, delta: float, most: float) -> Distinguished:
    """Run a whole test on both neighbours, up to ``runs`` times each."""
    from privatest.audit.running import attempt  # noqa: PLC0415

    tables = pair.tables(case.schema)

    def sample(which: int) -> list[float]:
        return released_numbers(attempt(case, tables[which], SecureNoise(), pair.seed).result)

    return told_apart(sample, runs=runs, delta=delta, most=most)


def by_draws(
    found: Replayed,
    *,
    runs: int,
    delta: float,
    most: float,
    noise: Callable[[], NoiseSource] = SecureNoise,
) -> Distinguished:
    """Call the mechanisms of a pair again, on the numbers that met their noise."""
    first, second = map(_distinct, found.calls)
    if not first:
        return Distinguished()

    def sample(which: int) -> list[float]:
        outputs = [call.repeat(noise=noise()) for call in (first, second)[which] if call.repeat]
        numbers = [x for output in outputs for x in _flat(output)][:_MOST_NUMBERS]
        likelihood = sum(map(_likelihood, outputs, first, second))
        return [likelihood, *numbers, *np.diff(numbers)]

    # draws are what takes time: where a run has many of them there are fewer runs
    return told_apart(sample, runs=_fewer(runs, first), delta=delta, most=most)


def _fewer(runs: int, calls: Sequence[MechanismCall]) -> int:
    numbers = sum(m.values.size if m.norm not in ("permutation", "absolute") else 1 for m in calls)
    return max(min(runs, _LEAST_RUNS), runs // max(numbers, 1))


def by_bits(found: Replayed, *, runs: int, delta: float, most: float) -> Distinguished:
    """Call the mechanisms of a pair again, and look at the low-order bits of what they give out."""
    sides = tuple(map(_distinct, found.calls))
    if not sides[0]:
        return Distinguished()

    def sample(which: int) -> list[float]:
        outputs = [m.repeat(noise=SecureNoise()) for m in sides[which] if m.repeat]
        return [_fraction_bits(x) for output in outputs for x in _flat(output)][:_MOST_NUMBERS]

    return told_apart(sample, runs=_fewer(runs, sides[0]), delta=delta, most=most)


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


def told_apart(
    sample: Sampler, *, runs: int, delta: float, most: float, alarm: float = FALSE_ALARM
) -> Distinguished:
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
    found = Distinguished()
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
    if result is None:  # refused: that is told apart too
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
) -> Distinguished:
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
        return Distinguished(0.0, len(first))
    column, threshold, above, forward = chosen
    hits = [int(_holds(own[1::2][:, column], threshold, above).sum()) for own in (first, second)]
    often, seldom = hits if forward else hits[::-1]
    bound = lower_bound(often, seldom, len(first[1::2]), delta, alarm)
    words = f"number {column + 1} {'>=' if above else '<'} {threshold:.6g}"
    return Distinguished(bound, len(first), words)


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
