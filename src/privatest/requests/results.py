"""Results as documents: released facts only, written as JSON and read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from privatest.core.privacy import Budget
from privatest.core.results import Decision, Outcome, ReleasedFacts, html_estimates
from privatest.core.text import EstimateTable
from privatest.core.validation import printable


class Result(Protocol):
    """What tests, estimates and releases have in common."""

    @property
    def spent(self) -> Budget:
        """Return its cost."""
        ...

    @property
    def simulated(self) -> bool:
        """Return whether the noise was not secret."""
        ...

    @property
    def guarantee(self) -> str:
        """Return the sentence on privacy."""
        ...

    def estimate_table(self) -> EstimateTable | None:
        """Return the released estimates for a reader."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; :func:`result_from_dict` reads them."""
        ...


def result_document(result: Result, compared: str, label: str) -> dict[str, Any]:
    """Return the document of a result: its plain values, and sentences about them.

    ``compared`` says what was compared with what, and ``label`` is its heading in a printed result.
    """
    sentences: dict[str, Any] = {"guarantee": result.guarantee}
    if isinstance(result, Decision):
        sentences |= {"verdict": result.verdict}
        if result.noise_to_chance is not None:
            sentences |= {"noise_to_chance": result.noise_to_chance}
        if result.noise_note:
            sentences |= {"noise_note": result.noise_note}
    if label == "compared" or isinstance(result, Decision):
        sentences |= {"compared": compared}
    return result.to_dict() | sentences


def result_from_dict(document: Mapping[str, Any], spent: Budget) -> Result | None:
    """Return the result of a JSON document, or None if it holds no result."""
    names = document.keys()
    if {"reject", "null_hypothesis"} <= names:
        kind = Outcome if "pvalue" in names else Decision
        return kind.from_dict(document, spent)
    if {"columns", "adjustment"} <= names:
        return ColumnResults.from_dict(document, spent)
    if {"mean", "region_shape"} <= names:
        from privatest.methods.mean_inference import MeanEstimate  # noqa: PLC0415 - only when it is needed

        return MeanEstimate.from_dict(document, spent)
    if {"quantile", "q"} <= names:
        from privatest.methods.quantiles import QuantileEstimate  # noqa: PLC0415

        return QuantileEstimate.from_dict(document, spent)
    if "parquet" in names:
        from privatest.synthetic import SyntheticData  # noqa: PLC0415

        return SyntheticData.from_dict(document)
    return None


@dataclass(frozen=True, slots=True, eq=False)
class ColumnResults(ReleasedFacts):
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
        """Return whether the noise was not secret."""
        return any(result.simulated for result in self.columns.values())

    @property
    def guarantee(self) -> str:
        """Return the sentence on privacy, with the cost of all columns together."""
        first = next(iter(self.columns.values()))
        return replace(first, spent=self.spent).guarantee

    def estimate_table(self) -> EstimateTable:
        """Return column, adjusted p-value and decision."""
        rows = (
            (printable(name), f"{each.pvalue:.4g}", "reject" if each.reject else "do not reject")
            for name, each in self.columns.items()
        )
        return EstimateTable(self.heading, tuple(rows), ("column", "adjusted p-value", "decision"))

    @property
    def heading(self) -> str:
        """Return the test, the number of columns and the adjustment."""
        first = next(iter(self.columns.values()))
        return (
            f"{first.method} of {len(self.columns)} columns at level {first.alpha:g}, "
            f"p-values adjusted ({self.adjustment})"
        )

    def __str__(self) -> str:
        """Print a line for each column, and the guarantee."""
        rows = self.estimate_table().rows
        width = max(len(name) for name, _, _ in rows)
        lines = [f"  {name:<{width}}  p = {p:<9} {decision}" for name, p, decision in rows]
        return "\n".join([f"{self.heading}:", *lines, self.guarantee])

    def _repr_html_(self) -> str:
        return html_estimates(self.estimate_table(), self.guarantee)

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
        """Read the document that :meth:`to_dict` wrote; ``spent`` is its exact cost."""
        share = spent.divided(len(values["columns"]))
        documents = values["columns"]
        columns = {
            name: cast("Outcome", result_from_dict(documents[name], share))
            for name in values.get("order", documents)
        }
        return cls(columns, values["adjustment"], spent)
