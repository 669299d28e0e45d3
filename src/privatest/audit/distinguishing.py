"""Tell neighbours apart by outputs: a lower bound on epsilon, from runs with the real noise.

An event is chosen on one half of the runs, and counted on the other. Clopper and Pearson's limits
make the bound hold with the stated confidence, however the event was found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.audit.cases import SCHEMA, Case
from privatest.audit.neighbours import Pair
from privatest.core.noise import SecureNoise
from privatest.core.results import Decision

if TYPE_CHECKING:
    from privatest.questions import Result

__all__ = ["Distinguished", "distinguish", "lower_bound"]

FALSE_ALARM = 1e-6  # of a whole audit of one pair
_LOOKS = 6  # after each the runs double: a large violation is found early
_THRESHOLDS = 64


@dataclass(frozen=True, slots=True)
class Distinguished:
    """What an attacker who knows both neighbours can say.

    Attributes
    ----------
    epsilon : float
        The test spends at least that, with confidence 1 - 1e-6; 0 says nothing.
    runs : int
        Of each neighbour, those with which the event was chosen included.
    event : str
        What was counted.
    """

    epsilon: float = 0.0
    runs: int = 0
    event: str = ""


def distinguish(case: Case, pair: Pair, *, runs: int, delta: float, most: float) -> Distinguished:
    """Run a test on both neighbours, up to ``runs`` times each; stop when ``most`` is exceeded.

    Parameters
    ----------
    case : Case
        The test.
    pair : Pair
        The neighbours.
    runs : int
        The most runs of each.
    delta : float
        The delta of the test.
    most : float
        The epsilon that it claims: a bound above it ends the search.
    """
    tables = pair.tables(SCHEMA)
    outputs: list[list[list[float]]] = [[], []]
    found = Distinguished()
    for look in range(_LOOKS):
        wanted = max(2, runs >> (_LOOKS - 1 - look))
        for own, table in zip(outputs, tables, strict=True):
            while len(own) < wanted:
                own.append(_numbers(case.run(table, SecureNoise())))
        first, second = (np.array(own, dtype=np.float64) for own in outputs)
        found = _best(first, second, delta, FALSE_ALARM / _LOOKS)
        if found.epsilon > most:
            break
    return found


def _numbers(result: Result) -> list[float]:
    """Return the released numbers of a result, in a fixed order."""
    if isinstance(result, Decision):
        told: list[Any] = [result.reject, getattr(result, "pvalue", None), None]
        told[2] = getattr(result, "statistic", None)
    else:
        document = result.to_dict()
        told = [document.get("mean"), document.get("quantile"), document.get("estimates")]
    flat = [np.ravel(np.asarray(t, dtype=np.float64)) for t in told if _is_number(t)]
    return [float(x) for part in flat for x in part[:3]]


def _is_number(value: Any) -> bool:
    try:
        return value is not None and bool(np.isfinite(np.asarray(value, dtype=np.float64)).all())
    except (TypeError, ValueError):
        return False


def _best(
    first: NDArray[np.float64], second: NDArray[np.float64], delta: float, alarm: float
) -> Distinguished:
    """Choose an event on the even runs, and bound epsilon with the odd ones."""
    best, chosen = 0.0, (0, 0.0, True, True)
    halves = first[::2], second[::2]
    for column in range(first.shape[1] if first.ndim == 2 else 0):
        both = np.concatenate([half[:, column] for half in halves])
        for threshold in np.unique(np.quantile(both, np.linspace(0, 1, _THRESHOLDS))):
            for above in (True, False):
                p, q = (_share(half[:, column], threshold, above) for half in halves)
                for forward in (True, False):
                    a, b = (p, q) if forward else (q, p)
                    # as if counted again: rare events are not chosen by luck
                    score = math.log(max(a - delta, 1e-12) / (b + 3 / len(halves[0])))
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


def _holds(values: NDArray[np.float64], threshold: float, above: bool) -> NDArray[np.bool_]:
    return values >= threshold if above else values < threshold


def _share(values: NDArray[np.float64], threshold: float, above: bool) -> float:
    return float(_holds(values, threshold, above).mean())


def lower_bound(often: int, seldom: int, runs: int, delta: float, alarm: float) -> float:
    """Return the epsilon that counts of an event prove, with confidence 1 - ``alarm``.

    P <= e^epsilon Q + delta; P is bounded below and Q above, each with half of the alarm.
    """
    from scipy.special import betaincinv  # noqa: PLC0415

    beta: Callable[..., float] = betaincinv
    low = float(beta(often, runs - often + 1, alarm / 2)) if often else 0.0
    high = float(beta(seldom + 1, runs - seldom, 1 - alarm / 2)) if seldom < runs else 1.0
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0
