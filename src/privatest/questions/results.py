"""What an answer holds: released facts only, which can be written as JSON and read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from privatest.core.privacy import Budget
from privatest.core.results import Decision, Outcome

__all__ = ["Result", "result_from_dict"]


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


def result_from_dict(document: Mapping[str, Any], spent: Budget) -> Result | None:
    """Return the result that was recorded as JSON; None if the document is no result."""
    values = {name: value for name, value in document.items() if name not in ("epsilon", "delta")}
    if {"reject", "null_hypothesis"} <= values.keys():
        kind = Outcome if "pvalue" in values else Decision
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
