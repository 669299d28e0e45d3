"""One question asked of each of several columns: one budget in equal shares, p-values adjusted."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from privatest.core.adjusting import Adjustment, adjust
from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget
from privatest.core.results import Outcome, Released, html_table
from privatest.core.validation import printable
from privatest.questions.request import Prepared, Request
from privatest.questions.results import result_from_dict

if TYPE_CHECKING:
    import pyarrow as pa

    from privatest.core.noise import NoiseSource
    from privatest.data.schema import Schema

__all__ = ["ColumnResults", "PreparedEach", "one_for_each"]


@dataclass(frozen=True, slots=True, eq=False)
class ColumnResults(Released):
    """The same test of several columns.

    Attributes
    ----------
    columns : mapping of str to Outcome
        The result of each column, with its adjusted p-value. Intervals are not adjusted.
    adjustment : str
        How p-values were adjusted for the number of columns.
    spent : Budget
        What all of them cost together.
    """

    columns: Mapping[str, Outcome]
    adjustment: str
    spent: Budget

    @property
    def simulated(self) -> bool:
        """Whether the noise was not secret."""
        return any(result.simulated for result in self.columns.values())

    @property
    def guarantee(self) -> str:
        """The sentence on privacy, with what all columns cost together."""
        first = next(iter(self.columns.values()))
        return replace(first, spent=self.spent).guarantee

    def rows(self) -> list[tuple[str, str, str]]:
        """Return column, adjusted p-value and decision, for a reader."""
        return [
            (printable(name), f"{each.pvalue:.4g}", "reject" if each.reject else "do not reject")
            for name, each in self.columns.items()
        ]

    @property
    def _head(self) -> str:
        first = next(iter(self.columns.values()))
        return (
            f"{first.method} of {len(self.columns)} columns at level {first.alpha:g}, "
            f"p-values adjusted ({self.adjustment})"
        )

    def __str__(self) -> str:
        """Print a line for each column, and the guarantee."""
        rows = self.rows()
        width = max(len(name) for name, _, _ in rows)
        lines = [f"  {name:<{width}}  p = {p:<9} {decision}" for name, p, decision in rows]
        return "\n".join([f"{self._head}:", *lines, self.guarantee])

    def _repr_html_(self) -> str:
        table = html_table([("column", "adjusted p-value", "decision"), *self.rows()], self._head)
        return f"{table}<p>{html.escape(self.guarantee)}</p>"

    def to_dict(self) -> dict[str, Any]:
        """Return the released facts as plain Python values."""
        return {
            "columns": {name: result.to_dict() for name, result in self.columns.items()},
            "order": list(self.columns),  # a record sorts its keys
            "adjustment": self.adjustment,
            "epsilon": float(self.spent.epsilon),
            "delta": float(self.spent.delta),
            "simulated": self.simulated,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], spent: Budget) -> ColumnResults:
        """Read what :meth:`to_dict` wrote; of the cost it has only rounded numbers."""
        share = spent.divided(len(values["columns"]))
        found = values["columns"]
        columns = {
            name: cast("Outcome", result_from_dict(found[name], share))
            for name in values.get("order", found)
        }
        return cls(columns, values["adjustment"], spent)


def one_for_each(request: Request, names: Sequence[str]) -> dict[str, Request]:
    """Return a request for each column, which share the budget equally."""
    if len(set(names)) < max(2, len(names)):
        raise ParameterError("columns must name at least two different columns for each_column.")
    if request.options.get("release", "pvalue") == "decision":
        raise ParameterError(
            "each_column needs p-values: decisions cannot be adjusted. Leave out release."
        )
    share = request.budget.divided(len(names))
    rest = {name: value for name, value in request.parts.items() if name != "each_column"}
    return {
        name: replace(request, budget=share, parts=rest | {"columns": [name]}) for name in names
    }


@dataclass(frozen=True, slots=True)
class PreparedEach(Prepared):
    """A request for each of several columns, checked; it runs like one.

    Attributes
    ----------
    columns : mapping of str to Prepared
        The request of each column.
    """

    columns: Mapping[str, Prepared] = field(default_factory=dict)

    @classmethod
    def gather(
        cls, request: Request, columns: Mapping[str, Prepared], schema: Schema | None
    ) -> PreparedEach:
        """Put requests together that read one table, or the same two."""
        (head, first), *_ = columns.items()
        described = [] if schema is None else [name for name in columns if name in schema.columns]
        return cls(
            names=_union(part.names for part in columns.values()),
            text=_union(part.text for part in columns.values()),
            words=", ".join(columns) + first.words.removeprefix(head),
            label=first.label,
            call=lambda *tables: tables,
            arguments=first.arguments,
            request=request,
            schema=schema.select(described) if schema is not None and described else None,
            grouping=first.grouping,
            filters=first.filters,
            columns=columns,
        )

    def run(
        self, *tables: pa.Table, noise: NoiseSource | None = None, **more: Any
    ) -> ColumnResults:
        """Answer for each column, and adjust."""
        found = {
            name: each.run(*(table.select(each.reads) for table in tables), noise=noise, **more)
            for name, each in self.columns.items()
        }
        method: Adjustment = self.request.parts["each_column"]
        adjusted = adjust([*found.values()], method=method)  # type: ignore[list-item]
        columns = dict(zip(found, adjusted, strict=True))
        return ColumnResults(columns, method, self.request.budget)


def _union(names: Iterable[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(name for each in names for name in each))
