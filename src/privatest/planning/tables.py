"""The power of a test as a smooth curve, fitted to many simulated studies.

Two numbers decide nearly everything: how many standard errors the effect is (strength times the
root of n), and how large the noise is beside the sampling error (c over epsilon times the root of
n). A curve has both, and a correction for small n.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.text import reach
from privatest.planning.samplers import Sampler
from privatest.requests.catalogue import METHODS

Floats = NDArray[np.float64]
FEATURES = 10
_NO_NOISE = 1e9
_LEAST = 0.2  # epsilon times the root of n, of the studies that curves were fitted to
_FEWEST = math.sqrt(20)  # the root of their smallest n


@dataclass(frozen=True, slots=True)
class PowerCurve:
    """Power of one test against one kind of effect, at level .05.

    Attributes
    ----------
    unit : float
        Strength times the root of n that is 1 in the curve.
    noise : float
        Noise over sampling error, where epsilon times the root of n is 1.
    weights : tuple of float
        Of the features; empty for a test that does not see this kind of effect.
    runs : int
        How many simulated studies it was fitted to.
    alpha : float
        The level, and so the power without an effect.
    """

    unit: float
    noise: float
    weights: tuple[float, ...]
    runs: int
    alpha: float = 0.05

    def power(self, strength: float, sizes: Sequence[int], epsilon: float) -> float:
        """Return the power against an effect of this strength; ``sizes`` of groups or of all."""
        if not self.weights or strength == 0:
            return self.alpha
        chance, budget = reach(sizes, min(epsilon, _NO_NOISE))
        row = features(
            np.array([strength * chance / self.unit]),
            np.array([budget]),
            np.array([chance]),
            self.noise,
        )
        return self.alpha + (1 - self.alpha) * _normal(float((row @ np.array(self.weights))[0]))

    def noise_ratio(self, sizes: Sequence[int], epsilon: float) -> float:
        """Return how many times the sampling error the noise is."""
        return self.noise / reach(sizes, epsilon)[1]

    @classmethod
    def read(cls, document: dict[str, Any]) -> PowerCurve:
        """Read what the script of the tables wrote."""
        weights = tuple(float(weight) for weight in document["weights"])
        if weights:  # a curve that was fitted to fewer features has no more of them
            weights += (0.0,) * (FEATURES - len(weights))
        return cls(document["unit"], document["noise"], weights, document["runs"])


def features(signal: Floats, budget: Floats, chance: Floats, noise: float) -> Floats:
    """Return what the curve is linear in, a row for each study."""
    widening = np.sqrt(1 + (noise / budget) ** 2)  # of all error, by the noise
    seen = signal / widening
    # corrections stay as they were at the smallest budget that was simulated
    most = 0.5 * math.log1p((noise / _LEAST) ** 2)
    wide, small = np.minimum(np.log(widening), most), 1 / np.maximum(chance, _FEWEST)
    # of a test by permutations noise costs power before it is as large as chance
    gentle = 1 / (1 + np.maximum(budget, _LEAST) / noise)
    columns = [
        np.ones_like(seen),
        seen,
        np.sqrt(seen),
        wide,
        wide * seen,
        wide**2,
        small,
        small * seen,
        gentle,
        gentle * seen,
    ]
    return np.stack(columns, axis=1)


def _normal(value: float) -> float:
    return 0.5 * math.erfc(-value / math.sqrt(2))


# The shipped tables: curves of power, fitted to simulated studies by tools/power_tables.py.


Key = tuple[str, str, int, str, str]
LEVEL = 0.05  # that all curves are for
_NEAR = 2.6  # as a factor of the number of columns, for a ranking
_BOUNDS = (0.75, 1.35)  # how far bounds may be from those of the tables
# Means and shares move by the width of the bounds over n: only there it is known how noise grows.
_BY_WIDTH = ("means", "tables", "proportions", "regression")


@cache
def _document() -> dict[str, Any]:
    text = files("privatest.planning").joinpath("power.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


@cache
def _curves() -> Mapping[Key, PowerCurve]:
    names = ("question", "kind", "columns", "membership", "method")
    return {
        tuple(entry[name] for name in names): PowerCurve.read(entry)
        for entry in _document()["curves"]
    }


def tables_source(sizes: Sequence[int], epsilon: float) -> str:
    """Return when the tables were made, and whether their studies were like this one."""
    fewest, most = min(_document()["sizes"]), max(_document()["sizes"])
    least = min(_document()["epsilons"])
    people = round(reach(sizes, epsilon)[0] ** 2)  # as many in each of two groups
    outside = []
    if not fewest <= people <= most:
        outside.append(f"n = {people:,}, where the simulated studies have {fewest} to {most}")
    if epsilon < least:
        outside.append(f"epsilon {epsilon:.3g}, where they have at least {least:g}")
    words = f"tables of {_document()['made']}"
    return words + (f", extrapolated ({'; '.join(outside)})" if outside else "")


def tabulated(question: str, kind: str, columns: int, membership: str) -> dict[str, PowerCurve]:
    """Return the curves of all methods for a kind of effect; of the nearest number of columns."""
    having = {
        key[2]
        for key in _curves()
        if key[0] == question and key[1] == kind and key[3] == membership
    }
    near = min(having, key=lambda own: abs(math.log(own / columns)), default=0)
    if not near or max(near / columns, columns / near) > _NEAR or (near == 1) != (columns == 1):
        return {}
    place = (question, kind, near, membership)
    return {key[4]: curve for key, curve in _curves().items() if key[:4] == place}


def kinds_of(question: str, columns: int = 1) -> list[str]:
    """Return the kinds of effects that the tables have for a question."""
    found = [key[1] for key in _curves() if key[0] == question and (key[2] == 1) == (columns == 1)]
    return list(dict.fromkeys(found))


def effective(method: str, sampler: Sampler, epsilon: float) -> float | None:
    """Return the epsilon that means the same noise with the bounds of the tables.

    None where these bounds are too far from those of the tables to know.
    """
    entry = METHODS[sampler.question][method]
    if math.isnan(sampler.noise_scale):
        return None
    if entry.unbounded:
        return epsilon
    by_width = (
        entry.function.__module__.rpartition(".")[2] in _BY_WIDTH
        or entry.preset.get("distance") == "mean"
    )
    if not by_width and not _BOUNDS[0] <= sampler.noise_scale <= _BOUNDS[1]:
        return None
    return epsilon / sampler.noise_scale


def curve_of(
    method: str, sampler: Sampler, membership: str, *, alpha: float, delta: float
) -> PowerCurve | None:
    """Return the curve of a method for a sampler's kind, where the tables have it."""
    entry = METHODS[sampler.question].get(method)
    if entry is None or alpha != LEVEL or (delta and entry.gaussian):
        return None
    if effective(method, sampler, 1.0) is None:
        return None
    key = (sampler.question, sampler.kind, sampler.columns, membership, method)
    return _curves().get(key)
