"""From a result to a page: everything on it is in the result's JSON document, or public words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from typing import Any

from privatest.core.documents import JSON_FORMAT, write_text
from privatest.core.errors import ParameterError
from privatest.core.validation import of_type, reject
from privatest.planning.plans import Plan, Recommendation
from privatest.reports.markup import page
from privatest.reports.pairs import is_pairs, pairs_page
from privatest.reports.plans import is_plan, plan_page
from privatest.reports.sections import sections
from privatest.reports.subject import Subject
from privatest.requests.results import result_document

__all__ = ["report", "report_html"]


def report(
    result: Any, path: str | PathLike[str], *, about: Mapping[str, Any] | None = None
) -> None:
    """Write a result as one page of HTML, to be read, printed and passed on.

    Parameters
    ----------
    result : Decision, Outcome, MeanEstimate, SyntheticData, Plan, ... or mapping
        What was released, or the document that a command printed with ``--json``.
    path : str or path
        Where to write. The file is written whole, or not at all.
    about : mapping, optional
        What the document of a command says besides a result: ``title``, ``compared``, ``files``,
        ``request``, ``schema`` and ``ledger``. All of it is printed: public words only.

    Notes
    -----
    **Privacy** Post-processing: the page is a function of the result's JSON document.
    """
    if not of_type(path, str, PathLike):
        reject("path", "where to write the page", path)
    try:
        write_text(path, report_html(result, about=about))
    except OSError as error:
        raise ParameterError(f"{path} cannot be written: {error.strerror}.") from None


def report_html(result: Any, *, about: Mapping[str, Any] | None = None) -> str:
    """Return the page that :func:`report` writes."""
    document = _document(result) | dict(about or {})
    # what JSON cannot say is not on the page either: the report is that of the document
    read: dict[str, Any] = json.loads(json.dumps(document, allow_nan=False))
    if is_plan(read):
        return plan_page(read)
    if is_pairs(read):
        return pairs_page(read)
    subject = Subject.read(read)
    return page(subject.question, *sections(subject))


def _document(result: Any) -> dict[str, Any]:
    if isinstance(result, Mapping):
        return dict(result)
    if isinstance(result, (Plan, Recommendation)):
        return result.to_dict()
    if not hasattr(result, "to_dict") or not hasattr(result, "guarantee"):
        raise ParameterError(f"result must be a result or its JSON document; got {type(result)}.")
    told = result_document(result, "", "")
    return {"format": JSON_FORMAT} | {k: v for k, v in told.items() if v != "" or k != "compared"}
