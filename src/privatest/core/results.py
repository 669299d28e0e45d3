"""What a private test returns: released facts only, and what they cost.

A result never holds a raw statistic, a noise draw, a timing, or anything computed from data
that was not paid for.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

import numpy as np

from privatest.core.estimate_text import EstimateTable, estimate_table
from privatest.core.privacy import Adjacency, Budget

__all__ = ["Decision", "Outcome", "html_table"]

_ONE_SAMPLE_WORDS = "one {unit} replaced; the number of rows is public"
_ADJACENCY_WORDS: Mapping[str, str] = {
    "one": "one {unit} replaced within its group; group sizes are public",
    "both": "one {unit} replaced in each group; group sizes are public",
    "row": "one {unit} replaced, values and group together; only the total is public",
}


@dataclass(frozen=True, slots=True)
class Decision:
    """A private decision: reject the null hypothesis or not.

    Attributes
    ----------
    reject : bool
        Whether the null hypothesis is rejected at level ``alpha``.
    alpha : float
        The level of the test.
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

    def __post_init__(self) -> None:
        """Freeze the mappings too."""
        object.__setattr__(self, "sizes", MappingProxyType(dict(self.sizes)))
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy as plain values: read-only mappings can do neither."""
        values = {name: getattr(self, name) for name in (f.name for f in fields(self))}
        for name, value in values.items():
            if isinstance(value, MappingProxyType):
                values[name] = dict(value)
        return _rebuild, (type(self), values)

    @property
    def verdict(self) -> str:
        """The sentence a statistician would write."""
        word = "reject" if self.reject else "do not reject"
        return f"We {word} the hypothesis that {self.null_hypothesis} at level {self.alpha:g}."

    @property
    def guarantee(self) -> str:
        """The sentence on privacy."""
        if self.simulated:
            return "Simulated noise: this result is NOT private and must not be published."
        two_groups = set(self.sizes) != {"n"}
        words = _ADJACENCY_WORDS[self.adjacency] if two_groups else _ONE_SAMPLE_WORDS
        return f"Privacy spent: {self.spent} ({words.format(unit=self.unit)})."

    def facts(self) -> dict[str, str]:
        """Lines of the printed table."""
        return {
            "method": self.method,
            "sizes": ", ".join(f"{name} = {size:,}" for name, size in self.sizes.items()),
        }

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
        return "\n".join([self.verdict, *rows, *estimates, self.guarantee])

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
            "epsilon": float(self.spent.epsilon),
            "delta": float(self.spent.delta),
            "adjacency": self.adjacency,
            "unit": self.unit,
            "method": self.method,
            "null_hypothesis": self.null_hypothesis,
            "sizes": dict(self.sizes),
            "parameters": {key: _plain(value) for key, value in self.parameters.items()},
            "simulated": self.simulated,
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """Return :meth:`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)


@dataclass(frozen=True, slots=True)
class Outcome(Decision):
    """A private decision with its private p-value, and a statistic where one was paid for.

    Attributes
    ----------
    pvalue : float
        Valid p-value: under the null hypothesis P(pvalue <= a) <= a.
    statistic : float or None
        The private statistic, or None where none was released.
    estimates : mapping
        Private estimates that were released with it (means, differences, their noise), as
        read-only arrays or numbers; empty for most tests.
    """

    pvalue: float = 1.0
    statistic: float | None = None
    estimates: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Freeze the estimates too."""
        Decision.__post_init__(self)
        values = {name: _frozen(value) for name, value in self.estimates.items()}
        object.__setattr__(self, "estimates", MappingProxyType(values))

    def facts(self) -> dict[str, str]:
        """Lines of the printed table, with the p-value."""
        rows = {"p-value": f"{self.pvalue:g}"}
        if self.statistic is not None:
            rows["statistic"] = f"{self.statistic:.6g}"
        # not super(): a slotted dataclass is made anew, which breaks the zero-argument form
        return rows | Decision.facts(self)

    def estimate_table(self) -> EstimateTable | None:
        """Return the released means or differences for a reader, if there are some."""
        return estimate_table(self.estimates, self.parameters, self.alpha)

    def to_dict(self) -> dict[str, Any]:
        """Return the released facts as plain Python values."""
        released: dict[str, Any] = {"pvalue": self.pvalue, "statistic": self.statistic}
        if self.estimates:
            released["estimates"] = {key: _plain(value) for key, value in self.estimates.items()}
        return released | Decision.to_dict(self)


def html_table(rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """Return rows as an HTML table: the first of each is its heading, all of it is escaped."""
    body = "".join(
        f"<tr><th>{html.escape(first)}</th>"
        + "".join(f"<td>{html.escape(text)}</td>" for text in rest)
        + "</tr>"
        for first, *rest in rows
    )
    head = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{head}{body}</table>"


def _rebuild(kind: type[Decision], values: dict[str, Any]) -> Decision:
    return kind(**values)


def _frozen(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.copy()
        value.flags.writeable = False
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value
