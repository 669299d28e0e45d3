"""What a report is about: a JSON document, read once, and what its parts are called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from privatest.core.errors import ParameterError, PrivatestError
from privatest.core.privacy import Budget
from privatest.core.results import Decision
from privatest.data.schema import Schema
from privatest.requests.results import ColumnResults, result_from_dict
from privatest.synthetic import SyntheticData

__all__ = ["QUESTIONS", "Subject", "software"]

QUESTIONS = {
    "two-sample": "Do the groups differ?",
    "independence": "Are the columns related?",
    "paired": "Do the pairs differ?",
    "fit": "Does the column follow a distribution?",
    "mean": "How large is it on average?",
    "release": "What do the rows look like?",
}
_SHARES = "Do the owners' data differ?"
_UNKNOWN = "What was found?"


@dataclass(frozen=True, slots=True)
class Subject:
    """A document that a command printed with ``--json``, or that a result gives.

    Attributes
    ----------
    document : mapping
        All that is told: released and public values only.
    result : object
        The result that was read from it, or a release whose rows are in a file of their own.
    """

    document: Mapping[str, Any]
    result: Any

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Subject:
        """Read a document of a test, an estimate or a release."""
        try:
            cost = document.get("request") or document
            spent = Budget(cost["epsilon"], cost.get("delta", 0))
            result = result_from_dict(document, spent)
            if result is None and "rows" in document:
                result = _from_file(document.get("file"))
        except PrivatestError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError):
            result = None
        if result is None:
            raise ParameterError(
                "There is nothing to report: the document must be that of a result, as commands "
                "print it with --json."
            )
        return cls(document, result)

    @property
    def request(self) -> Mapping[str, Any]:
        """What was asked; empty where a function was called."""
        return self.document.get("request") or {}

    @property
    def one(self) -> Any:
        """The result, or of tests of each column the first one."""
        if isinstance(self.result, ColumnResults):
            return next(iter(self.result.columns.values()))
        return self.result

    @property
    def question(self) -> str:
        """The question as people ask it."""
        if "shares" in self.document:
            return _SHARES
        asked = str(self.request.get("question", ""))
        if not asked and isinstance(self.result, SyntheticData):
            asked = "release"
        if not asked and not isinstance(self.one, Decision):
            asked = "mean"
        return str(self.document.get("title") or QUESTIONS.get(asked, _UNKNOWN))

    @property
    def method_id(self) -> str:
        """The function that made the result, and which of its methods."""
        one = self.one
        if isinstance(one, SyntheticData):
            return f"release/{self.request.get('method') or one.facts.method.partition(' ')[0]}"
        return str(one.method_id)

    @property
    def method(self) -> str:
        """The method in words."""
        one = self.one
        if isinstance(one, SyntheticData):
            return str(one.facts.method)
        return one.method if isinstance(one, Decision) else one.method_id.replace("_", " ")

    @property
    def sizes(self) -> dict[str, int]:
        """Public sizes."""
        one = self.one
        if isinstance(one, SyntheticData):
            return {"n": one.facts.n}
        return dict(one.sizes) if isinstance(one, Decision) else {"n": one.n}

    @property
    def unit(self) -> str:
        """What the guarantee hides."""
        one = self.one
        return str(one.facts.unit if isinstance(one, SyntheticData) else one.unit)

    @property
    def schema(self) -> Schema | None:
        """The public description of the columns, if the document has it."""
        text = self.document.get("schema")
        if text is None and isinstance(self.result, SyntheticData):
            return self.result.facts.schema
        return None if text is None else Schema.from_text(str(text))


def _from_file(file: object) -> SyntheticData | None:
    """Read a release from where its command wrote it."""
    if not isinstance(file, str) or not Path(file).is_file():
        raise ParameterError("the file of this release is not there: its rows are the picture.")
    return SyntheticData.load(file)


def software() -> str:
    """Return the name and the version of this program."""
    try:
        return f"privatest {version('privatest')}"
    except PackageNotFoundError:  # it runs from its source
        return "privatest"
