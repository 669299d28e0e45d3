"""Results: released facts, what they cost, and how their levels and intervals are known.

A result never holds a raw statistic, a noise draw, a timing, or anything computed from data that
was not paid for.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial, wraps
from importlib import import_module
from numbers import Number
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.privacy import Adjacency, Budget, privacy_unit
from privatest.core.text import (
    ESTIMATES,
    EstimateRow,
    EstimateTable,
    estimate_table,
    interval_line,
    noise_line,
    noise_ratio,
    numbered,
    quiet,
    widening_of,
)
from privatest.core.validation import number, of_type, one_of, reject

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class EqualByValue:
    """Base of dataclasses, declared with ``eq=False``, that are equal if all their fields are.

    NaN equals NaN, and arrays are compared element by element. The ``__eq__`` of ``dataclass``
    cannot do that, and compares NaN differently before Python 3.13.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        """Return whether the class and all fields are the same."""
        if type(other) is not type(self):
            return NotImplemented
        pairs = zip(_compared(self), _compared(other), strict=True)
        return all(_same(one, another) for one, another in pairs)

    def __hash__(self) -> int:
        """Return a hash of the texts and numbers; NaN has no hash of its own."""
        simple = (each for each in _compared(self) if isinstance(each, (str, Number)))
        return hash((type(self), *(each for each in simple if each == each)))  # noqa: PLR0124


def _compared(value: Any) -> tuple[Any, ...]:
    return tuple(getattr(value, each.name) for each in fields(value) if each.compare)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.shape == other.shape and _same(one.tolist(), other.tolist())
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, (tuple, list)) and isinstance(other, type(one)):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return False
    return bool(one == other or (one != one and other != other))  # noqa: PLR0124


# Levels. A public test declares how its level is known, by proof for every sample size or by
# measurement; its results and docs/guarantees.md read the declaration.


Level = Literal["valid", "measured", "experimental"]
LEVELS: tuple[str, ...] = get_args(Level)
LEVEL_WORDS: Mapping[Level, str] = MappingProxyType(
    {
        "valid": "valid: proved for every sample size",
        "measured": "measured: by simulations, not proved",
        "experimental": "experimental: a true hypothesis may be rejected too often",
    }
)

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class DeclaredLevel:
    """What a test declares about its level.

    Attributes
    ----------
    usual : {"valid", "measured", "experimental"}
        "valid": P(p <= a) <= a under the null hypothesis is proved for every sample size.
        "measured": the p-value is an approximation; simulations show how often a true hypothesis
        is rejected. "experimental": it may be rejected too often.
    exceptions : mapping of str to str
        Other words that a result may carry, and when.
    """

    usual: Level
    exceptions: Mapping[str, str]

    @property
    def words(self) -> tuple[str, ...]:
        """All words that a result may carry."""
        return (self.usual, *self.exceptions)

    def __str__(self) -> str:
        """Write the declaration for a table."""
        return "; ".join([self.usual, *(f"{w}: {when}" for w, when in self.exceptions.items())])


def declare_level(usual: Level, **exceptions: str) -> Callable[[Function], Function]:
    """Declare the level of a public test, and mark its results with it.

    Parameters
    ----------
    usual : {"valid", "measured", "experimental"}
        The word for a result that carries none.
    **exceptions : str
        Other words, and when they apply. The test passes ``level=`` to its result then.
    """
    declared = DeclaredLevel(usual, MappingProxyType(exceptions))
    unknown = {*declared.words} - {*LEVELS}
    if unknown:
        raise ValueError(f"a level is one of {', '.join(LEVELS)}; got {', '.join(unknown)}.")

    def decorate(function: Function) -> Function:
        @wraps(function)
        def test(*arguments: Any, **options: Any) -> Any:
            return _marked(function(*arguments, **options), declared, function.__name__)

        test.__dict__["declared_level"] = declared
        return cast("Function", test)

    return decorate


def declared_level(function: Callable[..., Any]) -> DeclaredLevel | None:
    """Return the level that a function declares; None if it is not a test."""
    return getattr(function, "declared_level", None)


def _marked(result: Any, declared: DeclaredLevel, function: str) -> Any:
    """Return the result with its level and its method id; of a mapping, each of its results."""
    if isinstance(result, Mapping):
        return {name: _marked(each, declared, function) for name, each in result.items()}
    if not hasattr(result, "level"):
        return result  # not the result of a test: tests replace mechanisms by stand-ins
    if result.level not in (None, *declared.words):
        raise AssertionError(f"a result is {result.level}, which its test does not declare.")
    return replace(
        result, level=result.level or declared.usual, method_id=result.method_id or function
    )


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
    """Return the error probability of each open end: a one-sided interval has one."""
    return (1 - level) / (2 if alternative == "two-sided" else 1)


# Pictures and reports are made by packages in rows above, which are loaded at the first use.


class Shown:
    """Base of what can be drawn and reported: results, plans and releases."""

    __slots__ = ()

    def plot(self, *, axes: Axes | None = None) -> Axes | Figure:
        """Draw it with matplotlib; it costs nothing more.

        Parameters
        ----------
        axes : matplotlib Axes, optional
            Where to draw; a new figure by default. A picture with several parts takes none.

        Returns
        -------
        matplotlib Axes or Figure
            A figure where there are several parts.

        Notes
        -----
        **Privacy** Post-processing: only released and public numbers are drawn.
        """
        drawn: Axes | Figure = _display("plots").draw(self, axes=axes)
        return drawn

    def report(self, path: str | PathLike[str], **about: Any) -> None:
        """Write it as one page of HTML, to be read, printed and passed on.

        Parameters
        ----------
        path : str or path
            Where to write.
        **about
            As for :func:`privatest.report`.

        Notes
        -----
        **Privacy** Post-processing: the page holds what was released, and public words.
        """
        _display("reports").report(self, path, **about)


def _display(name: str) -> Any:
    return import_module(f"privatest.display.{name}")


_ONE_SAMPLE = "one {unit} replaced; the number of rows is public"
_ADJACENCY_WORDS: Mapping[str, str] = {
    "one": "one {unit} replaced within its group; group sizes are public",
    "both": "one {unit} replaced in each group; group sizes are public",
    "row": "one {unit} replaced, values and group together; only the total is public",
}


class ReleasedFacts(EqualByValue, Shown):
    """Base of frozen dataclasses of released facts: read-only, with a JSON document."""

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
        return partial(type(self), **values), ()

    def to_dict(self) -> dict[str, Any]:
        """Return the released facts as plain Python values."""
        document: dict[str, Any] = {}
        for name, value in _values(self).items():
            document |= _cost(value) if isinstance(value, Budget) else {name: _plain(value)}
        return document

    def to_json(self, *, indent: int | None = None) -> str:
        """Return :meth:`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)


class PrivateEstimate(ReleasedFacts):
    """Base of estimates that no test belongs to: a heading, a table and the guarantee."""

    __slots__ = ()
    rows_per_person: int
    spent: Budget
    simulated: bool

    @property
    def method_id(self) -> str:
        """The function that made the result."""
        raise NotImplementedError

    @property
    def heading(self) -> str:
        """What was estimated, from how many rows."""
        raise NotImplementedError

    def estimate_table(self) -> EstimateTable:
        """Return the estimates for a reader."""
        raise NotImplementedError

    @property
    def unit(self) -> str:
        """What the guarantee hides: a row, or a person with at most k rows."""
        return privacy_unit(self.rows_per_person)

    @property
    def neighbours(self) -> str:
        """How data sets differ that cannot be told apart."""
        return _ONE_SAMPLE.format(unit=self.unit)

    @property
    def guarantee(self) -> str:
        """The sentence on privacy."""
        return privacy_sentence(self.spent, self.unit, self.simulated)

    def __str__(self) -> str:
        """Print a line for each row of the table, and the guarantee."""
        rows = self.estimate_table().rows
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(["", *(cell.ljust(width) for cell, width in zip(row, widths, strict=True))])
            for row in rows
        ]
        return "\n".join([f"{self.heading}:", *(line.rstrip() for line in lines), self.guarantee])

    def _repr_html_(self) -> str:
        return html_estimates(self.estimate_table(), self.guarantee)

    def to_dict(self) -> dict[str, Any]:
        """Return the released facts as plain Python values."""
        document = ReleasedFacts.to_dict(self) | {"unit": self.unit, "method_id": self.method_id}
        return {name: value for name, value in document.items() if name not in _UNWRITTEN}


_UNWRITTEN = ("intervals", "curve")  # functions of released numbers


@dataclass(frozen=True, slots=True, eq=False)
class Decision(ReleasedFacts):
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
    rows_per_person : int
        The most rows that one person has; the guarantee hides all of them.
    simulated : bool
        True if the noise came from a seeded generator: no privacy.
    level : {"valid", "measured", "experimental"} or None
        How it is known that a true hypothesis is rejected with probability ``alpha`` at most: by
        proof for every sample size ("valid"), or by simulations ("measured"). None in documents of
        older versions.
    method_id : str
        The function that made the result, and after a slash which of its tests, as in "kruskal" and
        "ks_2samp/kuiper". It stays the same where ``method`` is worded anew.
    """

    reject: bool
    alpha: float
    spent: Budget
    adjacency: Adjacency
    method: str
    null_hypothesis: str
    sizes: Mapping[str, int]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    rows_per_person: int = 1
    simulated: bool = False
    level: Level | None = None
    method_id: str = ""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], spent: Budget) -> Self:
        """Read what :meth:`to_dict` wrote, now or in earlier versions; the cost is apart."""
        return cls(**known_values(cls, values), spent=spent)

    @property
    def function(self) -> str:
        """The name of the function that made the result."""
        return self.method_id.partition("/")[0]

    @property
    def verdict(self) -> str:
        """The sentence a statistician would write."""
        word = "reject" if self.reject else "do not reject"
        return f"We {word} the hypothesis that {self.null_hypothesis} at level {self.alpha:g}."

    @property
    def unit(self) -> str:
        """What the guarantee hides: a row, or a person with at most k rows."""
        return privacy_unit(self.rows_per_person)

    @property
    def neighbours(self) -> str:
        """How data sets differ that cannot be told apart."""
        words = _ONE_SAMPLE if set(self.sizes) == {"n"} else _ADJACENCY_WORDS[self.adjacency]
        return words.format(unit=self.unit)

    @property
    def guarantee(self) -> str:
        """The sentence on privacy."""
        return privacy_sentence(self.spent, self.unit, self.simulated, neighbours=self.neighbours)

    @property
    def noise_to_chance(self) -> float | None:
        """Noise over sampling error in the p-value, from public numbers; None if unknown."""
        return noise_ratio(
            self.method_id,
            self.sizes,
            *self.spent.as_floats,
            private_groups=self.adjacency == "row",
            rows_per_person=self.rows_per_person,
        )

    @property
    def noise_note(self) -> str:
        """What noise does to the p-value, and to the interval if there is one; or nothing."""
        return "" if quiet() else " ".join(self._noise_sentences())

    def _noise_sentences(self) -> list[str]:
        ratio = self.noise_to_chance
        return [] if ratio is None else [noise_line(ratio, self.method_id)]

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
            "rows_per_person": self.rows_per_person,
            "method_id": self.method_id,
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
    estimated : str
        What the interval among them is about, as in "tau" and "difference"; "" without one.
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
    estimated: str = ""
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
        if abs(level - self.interval_level) > 1e-12:
            raise ParameterError(
                f"confidence_level must be {self.interval_level:g}: a result that was read from a "
                f"record has the interval of its own level only."
            )
        low, high = self._ends()
        if np.ndim(self.estimates["lower"]) == 0:
            return Interval(float(low[0]), float(high[0]), level)
        return Interval(low, high, level)

    @property
    def interval_widening(self) -> float | None:
        """How many times as wide noise makes the interval; None if unknown, or without one.

        Infinite if noise leaves it without an end. Post-processing of what was released.
        """
        if "lower" not in self.estimates or self.estimated not in ESTIMATES:
            return None
        alternative = str(self.parameters.get("alternative", "two-sided"))
        if alternative == "two-sided" and not np.all(np.isfinite(self._ends())):
            return math.inf
        if self.intervals is None:
            return self.recorded_widening
        interval = self.intervals(self.interval_level)
        return widening_of(interval, alternative, self.estimates[ESTIMATES[self.estimated].key])

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

    @property
    def interval_level(self) -> float:
        """The level of the interval among the estimates: 1 - alpha, but for equivalence tests."""
        return float(self.parameters.get("interval_level", 1 - self.alpha))

    @property
    def estimate_rows(self) -> tuple[EstimateRow, ...]:
        """What was estimated, a row for each column, group or category; empty without estimates."""
        kind = ESTIMATES.get(self.estimated)
        if kind is None or "lower" not in self.estimates:
            return ()
        values = np.atleast_1d(np.asarray(self.estimates[kind.key], dtype=np.float64))
        named = (self.parameters.get(name) for name in ("group_names", "columns", "categories"))
        names = next((list(each) for each in named if each), [])
        if len(names) != len(values):
            names = numbered(len(values), "")
        ends = zip(*self._ends(), strict=True)
        return tuple(
            EstimateRow(
                str(name), float(value), Interval(*end, self.interval_level), kind.unit, kind.what
            )
            for name, value, end in zip(names, values, ends, strict=True)
        )

    def _noise_sentences(self) -> list[str]:
        sentences, widening = Decision._noise_sentences(self), self.interval_widening
        if widening is not None:
            limits = ESTIMATES[self.estimated].limits
            sentences.append(interval_line(widening, self._ends(), limits))
        return sentences

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
        return estimate_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the released facts as plain Python values."""
        released: dict[str, Any] = {"pvalue": self.pvalue, "statistic": self.statistic}
        if self.statistic_name:
            released["statistic_name"] = self.statistic_name
        if self.estimates:
            released["estimates"] = {key: _plain(value) for key, value in self.estimates.items()}
            released["estimated"] = self.estimated
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


def html_estimates(table: EstimateTable, guarantee: str) -> str:
    """Return a table of estimates and the guarantee as HTML."""
    rows = [table.head, *table.rows] if table.head else table.rows
    cells = [[cell.strip() for cell in row] for row in rows]
    return html_table(cells, table.caption) + f"<p>{html.escape(guarantee)}</p>"


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
    return f"Privacy spent: {spent} ({neighbours or _ONE_SAMPLE.format(unit=unit)})."


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a copy that nobody can change."""
    copy = array.copy()
    copy.flags.writeable = False
    return copy


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


# --- documents of versions whose results had no method id ---------------------------------

_EARLIER_TITLES = {
    r"two-sample MMD": "mmd_test/kernel",
    r"\d+-sample MMD": "mmd_test/several",
    r"two-sample test by the largest": "mmd_test/largest",
    r"two-sample test by difference": "ipm_test/mean",
    r"two-sample test by (sliced )?Wasserstein": "ipm_test/wasserstein",
    r"two-sample test by total": "ipm_test/total-variation",
    r"two-sample test by Kolmogorov": "ipm_test/kolmogorov",
    r"two-sample Kolmogorov": "ks_2samp/ks",
    r"two-sample Kuiper": "ks_2samp/kuiper",
    r"Mann": "mannwhitneyu",
    r"Kruskal": "kruskal",
    r"median test": "median_test",
    r"Hodges": "hodges_lehmann",
    r"(two-sample|paired) mean embedding test": "me_test",
    r"(two-sample|paired) mean embedding permutation": "me_permutation_test",
    r"(two-sample|paired) smooth characteristic function test": "scf_test",
    r"(two-sample|paired) smooth characteristic function perm": "scf_permutation_test",
    r"two-sample Hotelling": "hotelling_test",
    r"one-sample Hotelling": "hotelling_1samp",
    r"two-sample t-test": "ttest_ind",
    r"one-sample t-test": "ttest_1samp",
    r"paired t-test": "ttest_rel",
    r"equivalence of two means": "tost_ind",
    r"equivalence of paired means": "tost_rel",
    r"equivalence of two proportions": "tost_proportions",
    r"test of equal proportions": "proportions_test",
    r"one-way analysis": "f_oneway",
    r"test of tests": "test_of_tests",
    r"SARRM": "sarrm_test",
    r"HSIC": "hsic_test/kernel",
    r"independence test by the largest": "hsic_test/largest",
    r"independence test by a trend": "hsic_test/trend",
    r"Kendall": "kendalltau",
    r"Spearman": "spearmanr",
    r"Pearson": "pearsonr",
    r"linear regression": "linregress",
    r"chi-squared test of independence": "chi2_contingency",
    r"chi-squared test of shares": "chisquare",
    r"conditional independence": "conditional_independence_test",
    r"conditional randomisation": "conditional_randomisation_test",
    r"symmetry test for paired data \(Kolm": "symmetry_test/ks",
    r"symmetry test for paired data \(Kuiper": "symmetry_test/kuiper",
    r"sign test": "sign_test",
    r"Wilcoxon": "wilcoxon",
    r"one-sample Kolmogorov": "ks_1samp/ks",
    r"one-sample Kuiper": "ks_1samp/kuiper",
    r"one-sample Cram": "ks_1samp/cvm",
    r"one-sample Wasserstein": "ks_1samp/wasserstein",
    r"Kolmogorov-Smirnov test of a location": "ks_family/ks",
    r"Kuiper test of a location": "ks_family/kuiper",
    r"binomial test": "binom_test",
    r"comparison of two shares": "compare",
    r"comparison of two releases": "compare_releases",
    r"test of a (share|mean) from": "release_test",
    r"independence from a measured": "release_test",
    r"(two-sample|independence) permutation test of": "permutation_test",
}


def known_values(kind: type[Any], document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a document has, and those that earlier versions did not write."""
    values = {each.name: document[each.name] for each in fields(kind) if each.name in document}
    if "rows_per_person" not in values:
        declared = re.search(r"at most (\d+) rows", document.get("unit", ""))
        values["rows_per_person"] = int(declared[1]) if declared else 1
    if issubclass(kind, Decision) and "method_id" not in values:
        titles = (i for title, i in _EARLIER_TITLES.items() if re.match(title, values["method"]))
        values["method_id"] = next(titles, "")
    if issubclass(kind, Outcome):
        if "interval_widening" in document:
            values["recorded_widening"] = document["interval_widening"]
        values.setdefault("estimated", _earlier_estimate(values.get("estimates", {})))
    return values


def _earlier_estimate(estimates: Mapping[str, Any]) -> str:
    if "lower" not in estimates:
        return "feature_differences" if "difference" in estimates else ""
    if "difference" in estimates:
        return "difference_of_proportions" if "proportions" in estimates else "difference"
    return next((name for name in ESTIMATES if name in estimates), "")


# Many tests at once: p-values adjusted for how many there are.


Adjustment = Literal["holm", "bonferroni", "bh", "by"]
ADJUSTMENTS: tuple[str, ...] = get_args(Adjustment)


def adjust(results: Sequence[Outcome], *, method: Adjustment = "holm") -> list[Outcome]:
    """Adjust the p-values of several tests, so that their decisions hold together.

    Parameters
    ----------
    results : sequence of Outcome
        Tests with p-values, all of one level. Pass all that were made: leaving some out because
        of what they showed makes the rest look better than they are.
    method : {"holm", "bonferroni", "bh", "by"}
        "holm" and "bonferroni" bound the chance of any false rejection, however the tests depend
        on each other (Holm is never worse); "bh" bounds the expected share of false rejections
        where the p-values are independent or positively dependent (Benjamini and Hochberg), "by"
        does so always.

    Returns
    -------
    list of Outcome
        In the same order, each with its adjusted p-value and its decision at the level. Compare
        the adjusted p-value with alpha, or with nothing else. Printed results say that they were
        adjusted, and ``parameters["adjusted"]`` says how, in their JSON documents too.

    Notes
    -----
    **Sensitivity** None: this uses released p-values only.

    **Privacy** Post-processing; it costs nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from privatest.methods.signs import sign_test
    >>> rng = np.random.default_rng(0)
    >>> columns = [rng.normal(shift, 1, size=2000) for shift in (0.3, 0.0, 0.3)]
    >>> tests = [sign_test(column, epsilon=1) for column in columns]
    >>> [result.reject for result in adjust(tests)][::2]
    [True, True]
    """
    one_of("method", method, ADJUSTMENTS)
    found = list(results) if of_type(results, Iterable) else []
    if not found or not all(isinstance(result, Outcome) for result in found):
        raise ParameterError(
            "results must be tests with p-values, at least one: a decision has none to adjust."
        )
    if any("adjusted" in result.parameters for result in found):
        raise ParameterError(
            "results must be tests as they came: some were adjusted before. Adjust all tests once."
        )
    if len({result.alpha for result in found}) > 1:
        reject("results", "tests of one level alpha", "several levels")
    pvalues = _adjusted(np.array([result.pvalue for result in found]), method)
    return [
        replace(
            result,
            pvalue=float(pvalue),
            reject=bool(pvalue <= result.alpha),
            parameters={**result.parameters, "adjusted": f"{method}, {len(found)} tests"},
        )
        for result, pvalue in zip(found, pvalues, strict=True)
    ]


def _adjusted(pvalues: NDArray[np.float64], method: Adjustment) -> NDArray[np.float64]:
    count = len(pvalues)
    order = np.argsort(pvalues, kind="stable")
    ranks = np.arange(1, count + 1)
    raised = pvalues[order]
    if method in ("holm", "bonferroni"):
        raised = raised * (count + 1 - ranks if method == "holm" else count)
        raised = np.maximum.accumulate(raised)
    else:
        harmonic = float(np.sum(1 / ranks)) if method == "by" else 1.0
        raised = raised * (count * harmonic / ranks)
        raised = np.minimum.accumulate(raised[::-1])[::-1]
    adjusted = np.empty(count)
    adjusted[order] = np.minimum(raised, 1.0)
    return adjusted
