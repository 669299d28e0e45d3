"""What a curator says: what a request would cost, and what was released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from privatest.core.privacy import Budget
from privatest.questions import Result

__all__ = ["Answer", "Price"]


@dataclass(frozen=True, slots=True)
class Price:
    """What a request would cost; public, like everything it is computed from.

    Attributes
    ----------
    dataset : str
        The data set.
    budget : Budget
        The cost.
    part : str or None
        The part of the declared partition that is charged; None is all of the data.
    affordable : bool
        Whether the budgets of the data set and of the analyst have that much left now.
    recorded : bool
        Whether the analyst has the answer already, so that it costs nothing.
    """

    dataset: str
    budget: Budget
    part: str | None
    affordable: bool
    recorded: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "dataset": self.dataset,
            "epsilon": float(self.budget.epsilon),
            "delta": float(self.budget.delta),
            "part": self.part,
            "affordable": self.affordable,
            "recorded": self.recorded,
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """A released result.

    Attributes
    ----------
    dataset : str
        What was asked about.
    words : str
        What was compared with what.
    label : str
        What a printed result calls these words.
    result : Decision, MeanEstimate or SyntheticData
        The private result.
    id : str or None
        The entry of the ledger; None for a recorded answer.
    recorded : bool
        Whether it was answered from the record, at no cost.
    """

    dataset: str
    words: str
    label: str
    result: Result
    id: str | None
    recorded: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        facts = {"dataset": self.dataset, "id": self.id, "recorded": self.recorded}
        return self.result.to_dict() | facts
