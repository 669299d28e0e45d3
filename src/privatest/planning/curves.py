"""The power of a test as a smooth curve, fitted to many simulated studies.

Two numbers decide nearly everything: how many standard errors the effect is (strength times the
root of n), and how large the noise is beside the sampling error (c over epsilon times the root of
n). A curve has both, and a correction for small n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.chance import reach

__all__ = ["FEATURES", "Curve", "features"]

Floats = NDArray[np.float64]
FEATURES = 10
_NO_NOISE = 1e9
_LEAST = 0.2  # epsilon times the root of n, of the studies that curves were fitted to
_FEWEST = math.sqrt(20)  # the root of their smallest n


@dataclass(frozen=True, slots=True)
class Curve:
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
    def read(cls, document: dict[str, Any]) -> Curve:
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
