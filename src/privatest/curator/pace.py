"""When a curator goes on with a request.

Others can see when budget is reserved (there is less left), when an answer is recorded (its price
becomes nothing) and when it comes. Whoever may hold a watch must see public times only.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privatest.curator.config import DatasetConfig
    from privatest.curator.registration import Registration
    from privatest.requests.request import Prepared

__all__ = ["AT_ONCE", "Pace", "next_multiple"]


class Pace:
    """Goes on at once: for a custodian's own process, whose user holds the data."""

    number: str | None = None  # the id of the reservation, where it has to be known before

    def admitted(
        self, prepared: Prepared, dataset: DatasetConfig, registration: Registration
    ) -> None:
        """Learn that a request will be answered; nothing private was touched yet."""

    def reserving(self) -> None:
        """Return when budget may be reserved."""

    def ending(self) -> None:
        """Return when the end may be recorded; the second time at once."""


AT_ONCE = Pace()


def next_multiple(elapsed: float, period: float) -> float:
    """Return the first of period, 2 period, 3 period, ... that is not before ``elapsed``."""
    return max(math.ceil(elapsed / period), 1) * period
