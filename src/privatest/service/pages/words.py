"""Budgets, columns and results in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privatest.core.errors import PrivatestError
from privatest.core.privacy import Budget
from privatest.core.results import Decision, Outcome
from privatest.requests.results import Result, result_from_dict
from privatest.service.store import Job

__all__ = [
    "Account",
    "Shown",
    "account_words",
    "budget_words",
    "column_words",
    "result_of",
    "shown",
]

_LOW = 0.2  # of a budget left: time to tell the custodian
_MOST_LISTED = 30


@dataclass(frozen=True, slots=True)
class Account:
    """A budget for a reader.

    Attributes
    ----------
    words : str
        What is left of it.
    used : float
        The share that is spent, in [0, 1].
    low : bool
        Whether little is left.
    left : float or None
        What is left of epsilon, where prices are simply added up.
    """

    words: str
    used: float
    low: bool
    left: float | None = None

    @property
    def percent(self) -> int:
        """How much is left, in percent."""
        return round(100 * (1 - self.used))


def account_words(account: Mapping[str, Any]) -> Account:
    """Return what an account says, in the terms that decide."""
    left, limits, used = account["left"], account["limits"], float(account["used"])
    low = 1 - used < _LOW
    if "events" in limits:
        return Account(f"{left['events']} of {limits['events']} requests left", used, low)
    if "epsilon" in limits:
        rest = float(left["epsilon"])
        words = f"epsilon {rest:.4g} of {float(limits['epsilon']):.4g} left"
        if float(limits.get("delta", 0)):
            words += f", delta {float(left['delta']):.3g} of {float(limits['delta']):.3g}"
        return Account(words, used, low, rest)
    return Account(f"{100 * (1 - used):.3g}% left (composed tightly)", used, low)


def budget_words(budget: Mapping[str, Any] | None) -> dict[str, Account]:
    """Return the budgets of a data set for one person: its own, and theirs."""
    if budget is None:
        return {}
    found = {"Budget of the data set": account_words(budget["dataset"])}
    if budget["own"] is not None:
        found["Your budget"] = account_words(budget["own"])
    return found


def column_words(column: Mapping[str, Any]) -> str:
    """Say what a column holds, as the schema declares it."""
    if column["type"] == "numeric":
        low, high = (f"{end:g}" for end in column["bounds"])
        return f"{'whole numbers' if column['integer'] else 'numbers'} from {low} to {high}"
    names = column["categories"]
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    listed = ", ".join(names[:_MOST_LISTED]) + more
    hidden = "everybody may know" if column["membership"] == "public" else "it is hidden"
    return f"one of {listed}; {hidden} who is which"


@dataclass(frozen=True, slots=True)
class Shown:
    """A result for a reader.

    Attributes
    ----------
    sentence, guarantee : str
        The answer and its guarantee.
    tables : list of (caption, rows)
        The numbers.
    pvalue, alpha : float or None
        For the small picture of a test.
    """

    sentence: str
    guarantee: str
    tables: list[tuple[str, list[tuple[str, ...]]]]
    pvalue: float | None = None
    alpha: float | None = None


def result_of(job: Job) -> Result | None:
    """Return the result of a job; None where it has none that can be read."""
    if job.state != "answered" or job.document is None:
        return None
    try:
        spent = Budget(job.document["epsilon"], job.document.get("delta", 0))
        return result_from_dict(job.document, spent)
    except (PrivatestError, KeyError, TypeError, ValueError):
        return None


def shown(result: Result) -> Shown:
    """Return a result as a sentence, a guarantee and tables."""
    if isinstance(result, Decision):
        tables: list[tuple[str, list[tuple[str, ...]]]] = []
        estimates = result.estimate_table()
        if estimates is not None:
            tables.append((estimates.caption, [*estimates.rows]))
        tables.append(("the test", [*result.facts().items()]))
        pvalue = result.pvalue if isinstance(result, Outcome) else None
        return Shown(result.verdict, result.guarantee, tables, pvalue, result.alpha)
    released: Any = result
    sentence, rows = released.heading, [*released.estimate_table().rows]
    if len(rows) == 1 and len(rows[0]) == 3:  # one estimate fits in the sentence
        name, value, interval = rows[0]
        sentence = f"{sentence}: {name} is {value} {interval}"
    return Shown(f"{sentence}.", result.guarantee, [("the numbers", rows)])
