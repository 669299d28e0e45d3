"""A confidence interval, and how much of its width is noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.equality import EqualByValue
from privatest.core.validation import number

__all__ = ["Ends", "Interval", "confidence", "side_alpha"]

Ends = float | NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Interval(EqualByValue):
    """A confidence interval for what a result estimates; ``low, high = interval``.

    Attributes
    ----------
    low, high : float or ndarray
        Its ends; arrays hold simultaneous intervals. A one-sided one ends at a public bound.
    level : float
        How often such intervals cover what is estimated, all of them at once.
    sampling : float or ndarray or None
        Width of the interval that the same estimate would have without noise.
    privacy : float or ndarray or None
        What noise adds to that, and caution about rows that nobody sees: ``sampling`` and
        ``privacy`` add up to the width. None where the two cannot be told apart.
    """

    low: Ends
    high: Ends
    level: float
    sampling: Ends | None = None
    privacy: Ends | None = None

    @classmethod
    def around(cls, low: Ends, high: Ends, level: float, without_noise: Ends) -> Interval:
        """Return the interval with its width split; noise never makes one narrower."""
        width = np.asarray(high, dtype=np.float64) - np.asarray(low, dtype=np.float64)
        sampling = np.minimum(without_noise, width)
        parts = [
            float(part) if np.ndim(part) == 0 else part for part in (sampling, width - sampling)
        ]
        return cls(low, high, level, *parts)

    def __iter__(self) -> Iterator[Any]:
        """Unpack as ``low, high``, like SciPy's intervals."""
        yield self.low
        yield self.high

    def __str__(self) -> str:
        """Write the ends, the level and the parts of the width."""
        if np.ndim(self.low):
            low, high = np.atleast_1d(self.low), np.atleast_1d(self.high)
            return "\n".join(
                f"[{a:.6g}, {b:.6g}] ({100 * self.level:.4g}%)"
                for a, b in zip(low, high, strict=True)
            )
        text = f"[{self.low:.6g}, {self.high:.6g}] ({100 * self.level:.4g}%)"
        if self.sampling is None or self.privacy is None:
            return text
        return f"{text}: width {self.sampling:.3g} by chance, {self.privacy:.3g} more by noise"


def confidence(level: object) -> float:
    """Return a confidence level, checked."""
    return number("confidence_level", level, above=0, below=1)


def side_alpha(level: float, alternative: str) -> float:
    """Return what each open end of an interval may miss: all of it if there is one end only."""
    return (1 - level) / (2 if alternative == "two-sided" else 1)
