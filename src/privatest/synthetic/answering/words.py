"""Questions to a release in words, as commands and services get them: checked, then answered.

Post-processing of what was released: nothing is spent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privatest.core.errors import DataError, ParameterError
from privatest.core.validation import one_of
from privatest.synthetic.answering.conditions import column_values, number_column, selected

if TYPE_CHECKING:
    from privatest.synthetic.answering.estimates import Estimate
    from privatest.synthetic.data import SyntheticData

__all__ = ["FORMS", "WEIGHTS", "Asked", "Found", "ask", "describe_answer", "refuse_options"]

FORMS = {
    "mean": "COLUMN",
    "probability": "CONDITION",
    "quantile": "COLUMN Q",
    "correlation": "COLUMN COLUMN",
    "regression": "TARGET PREDICTOR...",
}
"""What can be asked of a release alone, and the words that each question takes."""

WEIGHTS = ("released", "nonnegative")
_SHARES = ("probability", "quantile")  # signed weights serve these badly
_GROUPED = ("mean", "probability")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question in words."""

    question: str
    words: tuple[str, ...]
    where: str | None = None
    by: str | None = None

    @property
    def name(self) -> str:
        """The question as a phrase."""
        words = self.words
        forms = {
            "mean": "mean of {0}",
            "probability": "probability of {0}",
            "quantile": "{1} quantile of {0}",
            "correlation": "correlation of {0} and {1}",
            "regression": "regression of {0}",
            "compare": "distance to {0}",
        }
        text = forms[self.question].format(*words)
        if self.where is not None:
            text += f" where {self.where}"
        return text if self.by is None else f"{text}, by {self.by}"

    @classmethod
    def read(
        cls, question: object, words: Sequence[str], where: str | None, by: str | None
    ) -> Asked:
        """Refuse a question that there is not, and too few or too many words."""
        asked = one_of("question", question, FORMS)
        expected = len(FORMS[asked].split())
        more = asked == "regression" and len(words) > expected
        if len(words) != expected and not more:
            raise ParameterError(f"words of {asked} must be {FORMS[asked].rstrip('.')}.")
        if asked == "quantile":
            _share(words[1])
        return cls(asked, tuple(words), where, by)

    def check(self, made: SyntheticData) -> None:
        """Refuse what a release cannot answer before anything is computed."""
        words, columns = self.words, made.columns
        if self.question in ("mean", "quantile"):
            number_column(words[0], columns)
        elif self.question == "probability":
            selected(words[0], columns)
        elif self.question == "correlation":
            for name in words:
                number_column(name, columns)
        elif self.question == "regression":
            number_column(words[0], columns)
            for name in words[1:]:
                column_values(name, columns)
        if self.where is not None:
            selected(self.where, columns)
        if self.by is not None:
            made.groups(self.by)


@dataclass(frozen=True, slots=True)
class Found:
    """Estimates by their names (empty for a single one), and what they were made from."""

    estimates: Mapping[str, Estimate]
    source: str


def refuse_options(
    question: str,
    where: str | None,
    by: str | None,
    weights: str | None,
    *,
    conditional: bool = True,
    weighted: bool = True,
    mark: str = "",
) -> None:
    """Refuse options that do not go with the question.

    Parameters
    ----------
    question, where, by, weights
        As they were given.
    conditional, weighted : bool
        Whether the question takes ``where``, and ``weights``.
    mark : str
        What the asker writes before an option's name: ``--`` on a command line.
    """
    if weights is not None and (not weighted or where or by):
        other = f"{mark}where and {mark}by" if weighted else question
        raise ParameterError(f"{mark}weights does not go with {other}.")
    if where is not None and not conditional:
        raise ParameterError(f"{mark}where does not go with {question}.")
    if by is not None and question not in _GROUPED:
        raise ParameterError(f"{mark}by is for {' and '.join(_GROUPED)} only.")


def ask(
    made: SyntheticData,
    asked: Asked,
    weights: str | None = None,
    *,
    mark: str = "",
    working: Callable[[str], AbstractContextManager[Any]] = nullcontext,
) -> Found:
    """Return the estimates, and what they were made from.

    Parameters
    ----------
    made : SyntheticData
        The release.
    asked : Asked
        The question, checked.
    weights : {"released", "nonnegative"}, optional
        Which weights answer; by default those that serve the question.
    mark : str
        As in :func:`refuse_options`.
    working : callable
        Shows words while something takes long.
    """
    source = made.source
    if source is not None or asked.where is not None or asked.by is not None:
        return Found(_answer(made, asked), "released" if source is None else "measured")
    chosen = weights or ("nonnegative" if asked.question in _SHARES else "released")
    if chosen == "nonnegative":
        with working("Looking for weights that are not negative ..."):
            fitted = made.nonnegative()
        return Found(_answer(fitted, asked), "released" if fitted is made else chosen)
    try:
        return Found(_answer(made, asked), chosen)
    except DataError:  # the weights nearly cancel; the message speaks of functions
        if weights is not None:
            raise DataError(
                f"the weights nearly cancel: there is more noise than signal; try {mark}weights "
                "nonnegative."
            ) from None
    return ask(made, asked, "nonnegative", working=working)


def describe_answer(asked: Asked, found: Found, made: SyntheticData) -> dict[str, Any]:
    """Return an answer as plain values, with the facts of the release."""
    from privatest.synthetic.storage import summary  # noqa: PLC0415

    document: dict[str, Any] = {"question": asked.question, "words": list(asked.words)}
    if list(found.estimates) == [""]:
        document |= found.estimates[""].to_dict()
    else:
        document["estimates"] = [
            {"name": name, **estimate.to_dict()} for name, estimate in found.estimates.items()
        ]
    document |= {"where": asked.where, "by": asked.by, "weights": found.source}
    return document | {"release": summary(made)}


def _answer(made: SyntheticData, asked: Asked) -> dict[str, Estimate]:
    """Answer with one estimate (without a name), or one for each group or predictor."""
    words, where = asked.words, asked.where
    if asked.by is not None:
        return made.by(asked.by, words[0], where=where)
    if asked.question == "regression":
        return made.regression(words[0], words[1:], where=where)
    answers: dict[str, Callable[[], Estimate]] = {
        "mean": lambda: made.mean(words[0], where=where),
        "probability": lambda: made.probability(words[0], where=where),
        "quantile": lambda: made.quantile(words[0], _share(words[1]), where=where),
        "correlation": lambda: made.correlation(words[0], words[1], where=where),
    }
    return {"": answers[asked.question]()}


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:  # also NaN
        hint = f": {share / 100:g} is the {share:g}% quantile" if 1 < share <= 100 else ""
        raise ParameterError(f"Q must be a number between 0 and 1{hint}.")
    return share
