"""What an answer holds: released facts only, which can be written as JSON and read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from privatest.core.privacy import Budget
from privatest.core.results import Decision, Outcome

__all__ = ["Result", "result_document", "result_from_dict"]

# What a document says beside a result: what follows from it, and whose answer it is.
_SAID = {"compared", "guarantee", "noise_note", "noise_to_chance", "verdict"}
_ABOUT = {
    *("dataset", "files", "format", "id", "label", "ledger", "recorded", "request", "schema"),
    *("shares", "title", "words"),
}


class Result(Protocol):
    """What every result says of itself, whether a test, an estimate or a release."""

    @property
    def spent(self) -> Budget:
        """What releasing it cost."""
        ...

    @property
    def simulated(self) -> bool:
        """Whether the noise was not secret."""
        ...

    @property
    def guarantee(self) -> str:
        """The sentence on privacy."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; :func:`result_from_dict` reads them."""
        ...


def result_document(result: Result, compared: str, label: str) -> dict[str, Any]:
    """Return the document of a result: its plain values, and what they say in words.

    Parameters
    ----------
    result : Result
        What was released.
    compared : str
        What was compared with what.
    label : str
        What a printed result calls these words.
    """
    said: dict[str, Any] = {"guarantee": result.guarantee}
    if isinstance(result, Decision):
        said |= {"verdict": result.verdict}
        if result.noise_to_chance is not None:
            said |= {"noise_to_chance": result.noise_to_chance}
        if result.noise_note:
            said |= {"noise_note": result.noise_note}
    if label == "compared" or isinstance(result, Decision):
        said |= {"compared": compared}
    return result.to_dict() | said


def result_from_dict(document: Mapping[str, Any], spent: Budget) -> Result | None:
    """Return the result that was recorded or served as JSON; None if the document is no result."""
    others = {"epsilon", "delta", *_SAID, *_ABOUT}
    values = {name: value for name, value in document.items() if name not in others}
    if {"reject", "null_hypothesis"} <= values.keys():
        kind = Outcome if "pvalue" in values else Decision
        if "interval_widening" in values:
            values["recorded_widening"] = values.pop("interval_widening")
        return kind(**values, spent=spent)
    if {"columns", "adjustment"} <= values.keys():
        from privatest.questions.each_column import ColumnResults  # noqa: PLC0415

        return ColumnResults.from_dict(values, spent)
    if {"mean", "region_shape"} <= values.keys():
        from privatest.means import MeanEstimate  # noqa: PLC0415 - only when it is needed

        return MeanEstimate.from_dict(values, spent)
    if {"quantile", "q"} <= values.keys():
        from privatest.quantiles import QuantileEstimate  # noqa: PLC0415

        return QuantileEstimate.from_dict(values, spent)
    if "parquet" in values:
        from privatest.synthetic import SyntheticData  # noqa: PLC0415

        return SyntheticData.from_dict(document)
    return None
