"""What a curator says: what a request would cost, what was released, or that it failed.

Of a failure the analyst is told one fixed sentence, and the custodian where it was. The message
of an exception and the local variables of its frames may hold data. Neither is written anywhere:
only the exception's type, and files, lines and functions.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

from privatest.core.errors import PrivatestError
from privatest.core.privacy import Budget
from privatest.requests.catalogue import METHODS
from privatest.requests.results import Result, result_document

if TYPE_CHECKING:
    from privatest.curator.config import DatasetConfig
    from privatest.ledger.state import Totals

NOT_OPEN = "The curator cannot be opened; tell the custodian."
_MOST_CAUSES = 8
LONGEST_LOG = 1 << 20  # bytes; then a new file is begun
_LOGS = 5  # older files that are kept
_STALE = 60  # seconds


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

    **Invariant**: it was paid for and is in the ledger; there is nothing in it to protect.

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
        """Return the document that the command line prints."""
        facts = {"dataset": self.dataset, "id": self.id, "recorded": self.recorded}
        return result_document(self.result, self.words, self.label) | facts


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What an answer would look like, from rows that nobody has.

    **Invariant**: no private row had a part in it; it cost nothing and is not in the ledger.

    Attributes
    ----------
    dataset, words, label : str
        As in :class:`Answer`.
    result : Decision, MeanEstimate or SyntheticData
        The result for the made-up rows.
    """

    dataset: str
    words: str
    label: str
    result: Result

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, marked."""
        return self.result.to_dict() | {"dataset": self.dataset, "made_up_rows": True}


class RequestFailed(PrivatestError):
    """A request did not end well. The message is fixed, whatever happened, but for an id."""

    def __init__(self, number: str, *, spent: bool) -> None:
        self.id = number
        self.spent = spent
        words = "its budget is spent" if spent else "nothing was spent"
        super().__init__(
            f"The request failed, and nothing was released; {words}. "
            f"The custodian finds the reason by its id, {number}."
        )


def log_failure(log: Path, number: str, error: BaseException, **facts: str) -> None:
    """Append one line to the custodian's log.

    Parameters
    ----------
    log : Path
        The file; it is made for its owner alone.
    number : str
        What the analyst was told.
    error : exception
        What happened.
    **facts : str
        Public words: the data set, the analyst, what was spent.
    """
    when = datetime.now(UTC).isoformat(timespec="seconds")
    words = [when, f"id={number}", *(f"{name}={value!r}" for name, value in facts.items())]
    line = " ".join([*words, " caused by ".join(_described(error))]) + "\n"
    _rotate(log, len(line))
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode())  # one write, so that lines of processes do not mix
    finally:
        os.close(descriptor)


def _rotate(log: Path, more: int) -> None:
    """Keep the last files of the log: log, log.1, ... A line being written goes into log.1."""
    try:
        if log.stat().st_size + more <= LONGEST_LOG:
            return
        busy = log.with_name(f"{log.name}.rotating")
        with suppress(FileNotFoundError):
            if time() - busy.stat().st_mtime > _STALE:  # of a process that was killed
                busy.unlink()
        os.close(os.open(busy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError:  # there is no log yet, or another process does it
        return
    try:
        if log.stat().st_size + more > LONGEST_LOG:  # nobody did it meanwhile
            for number in range(_LOGS, 0, -1):
                older = log.with_name(f"{log.name}.{number}")
                newer = log if number == 1 else log.with_name(f"{log.name}.{number - 1}")
                with suppress(FileNotFoundError):
                    newer.replace(older)
    finally:
        busy.unlink(missing_ok=True)


def _described(error: BaseException | None) -> Iterator[str]:
    for _ in range(_MOST_CAUSES):
        if error is None:
            return
        frames = traceback.extract_tb(error.__traceback__, limit=-20)
        places = [f"{Path(f.filename).name}:{f.lineno}:{f.name}" for f in frames]
        yield f"{type(error).__name__} at {' > '.join(places) or 'no place'}"
        error = error.__cause__ or error.__context__


# --- deployment facts, in the words of NIST SP 800-226 --------------------------------------------

_COMPOSITIONS = {
    "basic": "Basic composition: the epsilons and deltas of all answers are added up.",
    "tight": "Zero-concentrated differential privacy: the rhos of all answers are added up, and "
    "converted to epsilon and delta.",
    "equal": "Every answer costs the same; their largest number follows from the privacy loss "
    "distribution of one.",
}
_MECHANISMS = {
    "two-sample": "discrete Laplace, Tulap, Laplace, l-infinity or Gaussian noise on counts, rank "
    "statistics, moments or differences; a permutation test whose observed statistic has Laplace "
    "noise; votes of tests on parts of the rows, with noise or flipped coins",
    "independence": "as for two samples, on statistics of dependence, moments and tables",
    "paired": "Tulap noise on counts and rank sums; l-infinity, signed-sums or Gaussian noise on "
    "moments of differences",
    "fit": "Tulap noise on a distance of distribution functions; discrete Laplace or Gaussian "
    "noise on counts",
    "mean": "l-infinity, signed-sums or Gaussian noise on clipped moments, with axes of a "
    "covariance drawn by the exponential mechanism; discrete Laplace or Tulap noise on counts",
    "release": "Gaussian noise on counts and means of tables, or on coefficients of features",
}


def deployment_facts(dataset: DatasetConfig, totals: Totals) -> dict[str, Any]:
    """Return the facts, in the order in which they are read."""
    schema, policy = dataset.schema, dataset.policy
    people = schema.rows_per_person
    unit = "one row" if people == 1 else f"one person, who has at most {people} rows"
    questions = [question for question in METHODS if any(q == question for q, _ in policy.tests)]
    return {
        "dataset": dataset.name,
        "unit_of_privacy": f"{unit}, replaced by any other; the number of rows is public",
        "rows_per_person": people,
        "model": "central: a curator holds the rows and adds the noise",
        "epsilon": f"{totals.account.budget.epsilon:f}",
        "delta": f"{totals.account.budget.delta:f}",
        "period": _period(dataset),
        "composition": _COMPOSITIONS[totals.composition],
        "share_spent": float(totals.account.used),
        "largest_epsilon_of_one_answer": f"{(policy.largest or dataset.budget).epsilon:f}",
        "mechanisms": {question: _MECHANISMS[question] for question in questions},
        "methods": sorted(f"{question}/{method}" for question, method in policy.tests),
        "public": _public(dataset),
        "noise": "from the operating system's secure randomness; it cannot be seeded. It is drawn "
        "on integers or grids, so that rounding reveals nothing, but for the axes of a covariance",
        "side_channels": "the service gives answers and failures at multiples of a time that "
        "follows from public sizes; a request that takes longer than that can be seen to be late",
        "record": "a hash chain over every request, its price and its answer",
        "not_covered": "a guarantee is about the answers: it does not say that the data was "
        "collected rightly, nor that what holds for people like someone is unknown of them",
    }


def _period(dataset: DatasetConfig) -> str:
    """Say for how long the budget is; of periods, what they add up to."""
    if dataset.renew is None:
        return "for ever: a budget is never refilled by itself"
    days = isinstance(dataset.renew, int)
    often = f"every {dataset.renew} days" if days else str(dataset.renew)
    return (
        f"renewed {often}: epsilon, delta and share_spent are those of one period. Somebody who is "
        "in the data for k periods has k times epsilon and k times delta"
    )


def _public(dataset: DatasetConfig) -> list[str]:
    """Return what is treated as public: declared, not measured."""
    schema = dataset.schema
    known = ["the number of rows", "names, types, bounds and categories of the columns"]
    shown = [n for n, c in schema.columns.items() if getattr(c, "membership", "") == "public"]
    known += [f"which rows are in which category of {name!r}" for name in shown]
    return known


def facts_page(facts: dict[str, Any]) -> str:
    """Write the facts as one page of HTML that needs nothing else."""
    rows = "\n".join(
        f"<tr><th scope='row'>{escape(name.replace('_', ' '))}</th><td>{_cell(value)}</td></tr>"
        for name, value in facts.items()
    )
    title = f"How the answers about {escape(str(facts['dataset']))} are protected"
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{title}</title></head>\n<body><main><h1>{title}</h1>\n"
        "<p>In the terms of NIST SP 800-226, Guidelines for Evaluating Differential Privacy "
        f"Guarantees.</p>\n<table>\n{rows}\n</table></main></body></html>\n"
    )


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        items = [f"{escape(str(k))}: {escape(str(v))}" for k, v in value.items()]
        return _items(items)
    if isinstance(value, list):
        return _items([escape(str(each)) for each in value])
    if isinstance(value, float):
        return f"{100 * value:.0f}%"
    return escape(str(value))


def _items(items: list[str]) -> str:
    return "<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"
