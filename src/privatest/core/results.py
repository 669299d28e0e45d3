"""What a private test returns: released facts only, and what they cost.

A result never holds a raw statistic, a noise draw, a timing, or anything computed from data
that was not paid for.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.chance import (
    interval_line,
    limits_of,
    noise_line,
    noise_ratio,
    quiet,
    widening_of,
)
from privatest.core.equality import EqualByValue
from privatest.core.errors import ParameterError
from privatest.core.estimate_table import (
    EstimateTable,
    estimate_table,
    estimated_name,
    interval_level,
)
from privatest.core.intervals import Interval, confidence
from privatest.core.levels import LEVEL_WORDS, Level
from privatest.core.privacy import Adjacency, Budget
from privatest.core.showing import Shown

__all__ = ["Decision", "Outcome", "Released", "html_table", "privacy_sentence", "read_only"]

_ADJACENCY_WORDS: Mapping[str, str] = {
    "one": "one {unit} replaced within its group; group sizes are public",
    "both": "one {unit} replaced in each group; group sizes are public",
    "row": "one {unit} replaced, values and group together; only the total is public",
}


class Released(EqualByValue, Shown):
    """Base of frozen dataclasses of released facts: read-only, and written as JSON."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Freeze arrays and mappings too."""
        for name, value in _values(self).items():
            object.__setattr__(self, name, _frozen(value))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy as plain values: read-only mappings can do neither."""
        values = _values(self)
        for name, value in values.items():
            if isinstance(value, MappingProxyType):
                values[name] = dict(value)
        return _rebuild, (type(self), values)

    def to_dict(self) -> dict[str, Any]:
        """Return the released facts as plain Python values."""
        found: dict[str, Any] = {}
        for name, value in _values(self).items():
            found |= _cost(value) if isinstance(value, Budget) else {name: _plain(value)}
        return found

    def to_json(self, *, indent: int | None = None) -> str:
        """Return :meth:`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)


@dataclass(frozen=True, slots=True, eq=False)
class Decision(Released):
    """A private decision: reject the null hypothesis or not.

    Attributes
    ----------
    reject : bool
        Whether the null hypothesis is rejected at level ``alpha``.
    alpha : float
        The level of the test: the largest probability with which it rejects a true hypothesis.
    spent : Budget
        What releasing this cost.
    adjacency : {"one", "both", "row"}
        Which data sets cannot be told apart.
    method : str
        The test.
    null_hypothesis : str
        What was tested, in words.
    sizes : mapping of str to int
        The public sizes.
    parameters : mapping
        Public parameters that were used.
    unit : str
        What the guarantee hides: a row, or a person with at most k rows.
    simulated : bool
        True if the noise came from a seeded generator: no privacy.
    level : {"valid", "measured", "experimental"} or None
        How it is known that a true hypothesis is rejected with probability ``alpha`` at most: by
        proof for every sample size ("valid"), or by simulations ("measured"). None in documents of
        older versions.
    """

    reject: bool
    alpha: float
    spent: Budget
    adjacency: Adjacency
    method: str
    null_hypothesis: str
    sizes: Mapping[str, int]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    unit: str = "row"
    simulated: bool = False
    level: Level | None = None

    @property
    def verdict(self) -> str:
        """The sentence a statistician would write."""
        word = "reject" if self.reject else "do not reject"
        return f"We {word} the hypothesis that {self.null_hypothesis} at level {self.alpha:g}."

    @property
    def guarantee(self) -> str:
        """The sentence on privacy."""
        words = None if set(self.sizes) == {"n"} else _ADJACENCY_WORDS[self.adjacency]
        return privacy_sentence(self.spent, self.unit, self.simulated, neighbours=words)

    @property
    def noise_to_chance(self) -> float | None:
        """Noise over sampling error in the p-value, from public numbers; None if unknown."""
        epsilon, delta = self.spent.as_floats
        private = self.adjacency == "row"
        return noise_ratio(
            self.method, self.sizes, epsilon, delta, private_groups=private, unit=self.unit
        )

    @property
    def noise_note(self) -> str:
        """What noise does to the p-value, and to the interval if there is one; or nothing."""
        return "" if quiet() else " ".join(self._noise_sentences())

    def _noise_sentences(self) -> list[str]:
        ratio = self.noise_to_chance
        return [] if ratio is None else [noise_line(ratio, self.method)]

    def facts(self) -> dict[str, str]:
        """Lines of the printed table."""
        rows = {
            "method": self.method,
            "sizes": ", ".join(f"{name} = {size:,}" for name, size in self.sizes.items()),
        }
        return rows if self.level is None else rows | {"level": LEVEL_WORDS[self.level]}

    def estimate_table(self) -> EstimateTable | None:
        """Return the released estimates for a reader; a decision has none."""
        return None

    def estimate_lines(self) -> list[str]:
        """Return :meth:`estimate_table` as lines of text."""
        table = self.estimate_table()
        if table is None:
            return []
        return [f"{table.caption}:", *(f"  {label}: {text}" for label, text in table.rows)]

    def __str__(self) -> str:
        """Print the verdict, the facts, the estimates and the guarantee."""
        rows = [f"  {name:<9} {text}" for name, text in self.facts().items()]
        estimates = [f"  {line}" for line in self.estimate_lines()]
        notes = [self.noise_note] if self.noise_note else []
        return "\n".join([self.verdict, *rows, *estimates, self.guarantee, *notes])

    def _repr_html_(self) -> str:
        parts = [html_table(self.facts().items())]
        table = self.estimate_table()
        if table is not None:
            parts.append(html_table(table.rows, table.caption))
        return (
            f"<p><strong>{html.escape(self.verdict)}</strong></p>{''.join(parts)}"
            f"<p>{html.escape(self.guarantee)}</p>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the released facts as plain Python values."""
        return {
            "reject": self.reject,
            "alpha": self.alpha,
            **_cost(self.spent),
            "adjacency": self.adjacency,
            "unit": self.unit,
            "method": self.method,
            "null_hypothesis": self.null_hypothesis,
            "sizes": dict(self.sizes),
            "parameters": {key: _plain(value) for key, value in self.parameters.items()},
            "simulated": self.simulated,
            **({} if self.level is None else {"level": self.level}),
        }


@dataclass(frozen=True, slots=True, eq=False)
class Outcome(Decision):
    """A private decision with its private p-value, and a statistic where one was paid for.

    Attributes
    ----------
    pvalue : float
        Valid p-value: under the null hypothesis P(pvalue <= a) <= a.
    statistic : float or None
        The private statistic, or None where none was released.
    statistic_name : str
        What the statistic is, where it is not the one that the method is known for.
    estimates : mapping
        Private estimates that were released with it (means, differences, their noise), as
        read-only arrays or numbers; empty for most tests.
    intervals : callable or None
        From a level to the interval at that level, computed from released numbers alone. It is
        not part of the JSON document, which has the interval of level 1 - alpha.
    recorded_widening : float or None
        :attr:`interval_widening` of a result that was read from a document.
    """

    pvalue: float = 1.0
    statistic: float | None = None
    statistic_name: str = ""
    estimates: Mapping[str, Any] = field(default_factory=dict)
    intervals: Callable[[float], Interval] | None = field(default=None, repr=False, compare=False)
    recorded_widening: float | None = field(default=None, repr=False, compare=False)

    def __iter__(self) -> Iterator[float | None]:
        """Unpack as ``statistic, pvalue``, like SciPy's results."""
        yield self.statistic
        yield self.pvalue

    def confidence_interval(self, confidence_level: float = 0.95) -> Interval:
        """Return a confidence interval for what was estimated; it costs nothing more.

        Parameters
        ----------
        confidence_level : float
            How often such intervals cover. A one-sided test has one-sided intervals.

        Notes
        -----
        **Privacy** Post-processing: computed from what was released and public numbers.
        """
        level = confidence(confidence_level)
        if self.intervals is not None:
            return self.intervals(level)
        if "lower" not in self.estimates:
            raise ParameterError("this result has no confidence interval: it estimates nothing.")
        recorded = interval_level(self.parameters, self.alpha)
        if abs(level - recorded) > 1e-12:
            raise ParameterError(
                f"confidence_level must be {recorded:g}: a result that was read from a record "
                f"has the interval of its own level only."
            )
        low, high = self.estimates["lower"], self.estimates["upper"]
        return Interval(
            -math.inf if low is None else low, math.inf if high is None else high, level
        )

    @property
    def interval_widening(self) -> float | None:
        """How many times as wide noise makes the interval; None if unknown, or without one.

        Infinite if noise leaves it without an end. Post-processing of what was released.
        """
        name = estimated_name(self.estimates)
        if name is None:
            return None
        alternative = str(self.parameters.get("alternative", "two-sided"))
        if alternative == "two-sided" and not np.all(np.isfinite(self._ends())):
            return math.inf
        if self.intervals is None:
            return self.recorded_widening
        found = self.intervals(interval_level(self.parameters, self.alpha))
        return widening_of(found, alternative, self.estimates[name])

    def _ends(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the ends of the recorded intervals; in a document infinite ones are None."""
        low, high = (
            np.array([infinite if end is None else end for end in np.atleast_1d(ends).tolist()])
            for ends, infinite in (
                (self.estimates["lower"], -math.inf),
                (self.estimates["upper"], math.inf),
            )
        )
        return low, high

    def _noise_sentences(self) -> list[str]:
        said, widening = Decision._noise_sentences(self), self.interval_widening
        if widening is not None:
            said.append(interval_line(widening, self._ends(), limits_of(self.estimates)))
        return said

    def facts(self) -> dict[str, str]:
        """Lines of the printed table, with the p-value."""
        adjusted = self.parameters.get("adjusted")
        rows = {"p-value": f"{self.pvalue:g}" + (f" (adjusted: {adjusted})" if adjusted else "")}
        if self.statistic is not None:
            named = f" ({self.statistic_name})" if self.statistic_name else ""
            rows["statistic"] = f"{self.statistic:.6g}{named}"
        # not super(): slots=True makes a new class, which breaks the zero-argument form
        return rows | Decision.facts(self)

    def estimate_table(self) -> EstimateTable | None:
        """Return the released means or differences for a reader, if there are any."""
        return estimate_table(self.estimates, self.parameters, self.alpha)

    def to_dict(self) -> dict[str, Any]:
        """Return the released facts as plain Python values."""
        released: dict[str, Any] = {"pvalue": self.pvalue, "statistic": self.statistic}
        if self.statistic_name:
            released["statistic_name"] = self.statistic_name
        if self.estimates:
            released["estimates"] = {key: _plain(value) for key, value in self.estimates.items()}
            widening = self.interval_widening
            if widening is not None and math.isfinite(widening):
                released["interval_widening"] = widening
        return released | Decision.to_dict(self)


def html_table(rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """Return rows as an HTML table, escaped; the first cell of each row is its heading."""
    body = "".join(
        f"<tr><th>{html.escape(first)}</th>"
        + "".join(f"<td>{html.escape(text)}</td>" for text in rest)
        + "</tr>"
        for first, *rest in rows
    )
    head = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{head}{body}</table>"


def privacy_sentence(
    spent: Budget,
    unit: str,
    simulated: bool,
    *,
    what: str = "result",
    neighbours: str | None = None,
) -> str:
    """Say what was spent and what it hides, or that nothing is hidden.

    ``neighbours`` describes those of two samples; by default there is one sample.
    """
    if simulated:
        return f"Simulated noise: this {what} is NOT private and must not be published."
    words = neighbours or "one {unit} replaced; the number of rows is public"
    return f"Privacy spent: {spent} ({words.format(unit=unit)})."


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a copy that nobody can change."""
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def _rebuild(kind: type[Released], values: dict[str, Any]) -> Released:
    return kind(**values)


def _values(released: Any) -> dict[str, Any]:
    return {each.name: getattr(released, each.name) for each in fields(released)}


def _cost(spent: Budget) -> dict[str, float]:
    return {"epsilon": float(spent.epsilon), "delta": float(spent.delta)}


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return MappingProxyType({key: _frozen_item(item) for key, item in value.items()})
    return _frozen_item(value)


def _frozen_item(value: Any) -> Any:
    return read_only(value) if isinstance(value, np.ndarray) else value


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, float) and math.isinf(value):
        return None  # JSON has no infinity: an interval without that end
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value
