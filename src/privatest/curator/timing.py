"""When a curator answers, and what a request may take: by public sizes, never by values.

Others can see when budget is reserved (there is less left), when an answer is recorded (its price
becomes 0) and when it comes. All three happen at public times. An answer comes at a multiple of
the response time of its request, whether it was ready long before or only just. The response time
is twice the longest of the custodian's measurements on made-up rows of the same sizes, or a
cautious estimate without measurements, rounded up to one of few values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privatest.core.documents import write_text
from privatest.core.errors import ParameterError
from privatest.curator.admission import count_steps
from privatest.curator.registration import rows_of
from privatest.requests.request import PreparedEach

if TYPE_CHECKING:
    from privatest.curator.config import DatasetConfig
    from privatest.curator.registration import Registration
    from privatest.requests.catalogue import Method
    from privatest.requests.request import Prepared

VERSION = 1
MOST_MULTIPLES = 8  # of the response time: who is not ready by then is ended
RECORDING = 0.1  # seconds before an answer is due in which it is recorded
SAFETY = 2  # times the longest measurement
CAUTION = 8  # the same for methods whose time depends on values: made-up rows do not show it
_SHORTEST = 0.1
# Careful guesses, in seconds, where nobody has measured: of any request, of a number that is read,
# of a step as counted by count_steps.
_ANY, _NUMBER, _STEP = 1.0, 2e-6, 4e-10
_SLOWER = 10  # times as long is a step with all pairs of rows
# Sizes that a request may name, and what they are where it does not.
_USUAL = {"permutations": 999, "points": 500, "locations": 1, "cells": 1024}
_MEMORY, _BYTES = 2 << 30, 512  # of any request, and for each number that is read


class Schedule:
    """Never waits: for a custodian's own process, whose user holds the data."""

    number: str | None = None  # the id of the reservation, where it has to be known before

    def on_admission(
        self, prepared: Prepared, dataset: DatasetConfig, registration: Registration
    ) -> None:
        """Learn that a request will be answered; nothing private was touched yet."""

    def wait_to_reserve(self) -> None:
        """Return when budget may be reserved."""

    def wait_to_end(self) -> None:
        """Return when the end may be recorded; the second time at once."""


IMMEDIATE = Schedule()


def next_multiple(elapsed: float, period: float) -> float:
    """Return the first of period, 2 period, 3 period, ... that is not before ``elapsed``."""
    return max(math.ceil(elapsed / period), 1) * period


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """What a request may take; all of it follows from public sizes.

    Attributes
    ----------
    period : float
        Its response time in seconds: answers come at multiples of it.
    seconds : float
        After which it is ended.
    memory : int
        Bytes that it may have beside the program itself.
    """

    period: float
    seconds: float
    memory: int

    def after(self, elapsed: float) -> ResourceLimits:
        """Return what is left after some time."""
        return replace(self, seconds=max(self.seconds - elapsed, 1e-3))


# Until a request is admitted only its own words are read, and curator.toml.
ADMISSION_LIMITS = ResourceLimits(_SHORTEST, 60.0, _MEMORY)


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the time of a request depends on: public numbers.

    Attributes
    ----------
    rows, columns : int
        What is read.
    steps : int
        Of its computation, as the policy counts them; 0 if they are few.
    extent : int
        Other sizes that it names: permutations, locations, points of a release.
    """

    rows: int
    columns: int
    steps: int = 0
    extent: int = 1

    @classmethod
    def of(cls, prepared: Prepared, registration: Registration) -> Sizes:
        """Read them off an admitted request."""
        chosen = rows_of(registration, prepared.filters)
        given, steps = prepared.request.options, count_steps(prepared, chosen)
        if given.get("estimator") == "u":
            steps *= _SLOWER
        takes = prepared.request.entry.options
        own = {name: usual for name, usual in _USUAL.items() if name in takes}
        extent = math.prod(_extent(given.get(name, usual)) for name, usual in own.items())
        return cls(registration.rows, len(prepared.reads), steps, extent)


def _extent(value: object) -> int:
    if isinstance(value, (list, tuple)):
        return max(len(value), 1)
    if isinstance(value, (int, float)) and math.isfinite(value):
        return max(int(value), 1)
    return 1


@dataclass(frozen=True, slots=True)
class MethodTime:
    """The longest time of a method, in seconds, and the sizes that it was measured with."""

    seconds: float
    sizes: Sizes

    def scaled(self, sizes: Sizes) -> float:
        """Return about how long a request of other sizes takes; never less than measured."""
        own = self.sizes
        larger = max((sizes.rows / own.rows) * (sizes.columns / own.columns), 1.0)
        if not sizes.steps and not own.steps:  # steps count what the request names
            larger *= max(sizes.extent / own.extent, 1.0)
        more = max(sizes.steps - own.steps, 0)
        return self.seconds * larger + more * _STEP


@dataclass(frozen=True, slots=True)
class ResponseTimes:
    """What the custodian measured, by data set and by question and method.

    Attributes
    ----------
    date : str
        When.
    machine : mapping
        Public facts about where.
    datasets : mapping
        Measurements by the name of a data set, then by question/method.
    """

    date: str = ""
    machine: Mapping[str, Any] = field(default_factory=dict)
    datasets: Mapping[str, Mapping[str, MethodTime]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> ResponseTimes:
        """Read the file; where there is none, or one of another version, nothing was measured."""
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["version"] != VERSION:
                return cls()
            datasets = {
                name: {
                    which: MethodTime(float(each["seconds"]), Sizes(**each["sizes"]))
                    for which, each in measured.items()
                }
                for name, measured in found["datasets"].items()
            }
            return cls(str(found["date"]), dict(found["machine"]), datasets)
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise ParameterError(
                f"{path.name} cannot be read. It holds response times: remove it, and run "
                "privatest curator calibrate."
            ) from None

    def save(self, path: Path) -> None:
        """Replace the file."""
        text = json.dumps({"version": VERSION, **asdict(self)}, indent=1)
        try:
            write_text(path, text)
        except OSError as error:
            raise ParameterError(f"{path.name} cannot be written: {error.strerror}.") from None


def resource_limits(
    prepared: Prepared, dataset: DatasetConfig, registration: Registration, times: ResponseTimes
) -> ResourceLimits:
    """Return the response time of a request, and its limits."""
    request, sizes = prepared.request, Sizes.of(prepared, registration)
    measured = times.datasets.get(dataset.name, {}).get(f"{request.question}/{request.method}")
    if measured is None:
        tests = len(prepared.columns) if isinstance(prepared, PreparedEach) else 1
        numbers = sizes.rows * sizes.columns
        seconds = tests * _ANY + _NUMBER * numbers + _STEP * sizes.steps
    else:
        seconds = measured.scaled(sizes)
    period = response_time(request.entry, seconds)
    memory = _MEMORY + _BYTES * sizes.rows * sizes.columns
    return ResourceLimits(period, (MOST_MULTIPLES - 0.5) * period, memory)


def response_time(method: Method, seconds: float) -> float:
    """Return the response time of a request that took so long on made-up rows."""
    safety = CAUTION if method.caution else SAFETY
    return round_up_to_grid(safety * seconds + 2 * RECORDING)


def round_up_to_grid(seconds: float) -> float:
    """Round up to 0.1 times a power of the root of 2: few values, whatever was measured."""
    place = math.ceil(2 * math.log2(max(seconds, _SHORTEST) / _SHORTEST) - 1e-9)
    return _SHORTEST * 2 ** (place / 2)
