"""The questions of the page in words, and what each form turns into."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import ImmutableMultiDict

from privatest.core.errors import ParameterError
from privatest.requests.catalogue import METHODS

__all__ = ["ALTERNATIVES", "KINDS", "Fields", "Kind", "document_of", "options_of"]

ALTERNATIVES = {
    "two-sided": "a difference in either direction",
    "less": "the first is smaller",
    "greater": "the first is larger",
}
_LONGEST = 4000
Fields = ImmutableMultiDict[Any, Any]  # a form that was sent, or the query of an address


@dataclass(frozen=True, slots=True)
class Kind:
    """A question as people ask it.

    Attributes
    ----------
    question : str
        The catalogue's question.
    words, about : str
        The question, and what it is for.
    fields : tuple of str
        What its form has.
    methods : tuple of str
        The methods that answer it; all of the question's if empty.
    without : tuple of str
        Methods that answer another kind.
    """

    question: str
    words: str
    about: str
    fields: tuple[str, ...]
    methods: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def offered(self, tests: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return which of its methods a policy allows."""
        own = self.methods or METHODS[self.question].keys()
        questions = ("two-sample", "mean") if "success" in self.fields else (self.question,)
        return [
            (question, method)
            for question in questions
            for method in METHODS[question]
            if method in own and method not in self.without and (question, method) in tests
        ]


_SHARES = ("proportion", "tost-proportion")
KINDS: Mapping[str, Kind] = {
    "differ": Kind(
        "two-sample",
        "Do two groups differ?",
        "Compare groups of people in one or more columns.",
        ("group", "groups", "columns", "alternative"),
        without=_SHARES,
    ),
    "related": Kind(
        "independence",
        "Are columns related?",
        "Ask whether some columns say anything about others.",
        ("x", "y", "given", "alternative"),
    ),
    "fits": Kind(
        "fit",
        "Does a column follow a distribution?",
        "Compare one column with a distribution that you name.",
        ("column", "dist", "family", "shares"),
    ),
    "change": Kind(
        "paired",
        "Did it change from before to after?",
        "Compare two measurements of the same people.",
        ("before", "after", "alternative"),
    ),
    "means": Kind(
        "mean",
        "What is the mean, or the median?",
        "Estimate means or a quantile, with intervals.",
        ("columns", "q"),
        methods=("moments", "quantiles"),
    ),
    "proportions": Kind(
        "mean",
        "How many have it?",
        "Estimate a proportion, or compare that of two groups.",
        ("outcome", "success", "group", "groups", "alternative"),
        methods=_SHARES,
    ),
    "publish": Kind(
        "release",
        "Publish synthetic data",
        "Release made-up rows that keep what the data says about columns and pairs.",
        ("columns", "points"),
    ),
}
_LISTS = ("columns", "groups", "x", "y", "given")
_TEXTS = ("group", "before", "after", "column", "dist", "family", "shares")
_NUMBERS = ("epsilon", "delta", "alpha", "points", "q")


def document_of(kind: Kind, dataset: str, form: Fields) -> dict[str, Any]:
    """Return the request that a form asks for, without a method where none is chosen."""
    found: dict[str, Any] = {"dataset": dataset, "question": kind.question}
    for name in (*kind.fields, "epsilon", "delta", "alpha"):
        value = _value(name, form)
        if value not in (None, "", []):
            found[name] = value
    if "outcome" in found:
        found["columns"] = [found.pop("outcome")]
    if "success" in kind.fields and "group" in found:
        found["question"] = "two-sample"
    if kind.question == "release":
        found.pop("alpha", None)
    where = {
        str(key).removeprefix("where-"): list(map(str, form.getlist(key)))
        for key in form
        if str(key).startswith("where-")
    }
    if where:
        found["where"] = where
    return found | _more(form.get("more"))


def _value(name: str, form: Fields) -> Any:
    if name in _LISTS:
        return [str(each) for each in form.getlist(name) if each]
    text = form.get(name)
    if not isinstance(text, str):
        return None
    if name in _NUMBERS:
        try:
            number = float(text)
        except ValueError:
            return text  # the curator says what is wrong with it
        return int(number) if number.is_integer() and name == "points" else number
    return text.strip()


def options_of(document: Mapping[str, Any], question: str, method: str) -> dict[str, Any]:
    """Return the request with a method, without the form's options that it does not take."""
    known = METHODS[question][method].options
    dropped = {"alternative", "success", "points", "q"} - known.keys()
    kept = {name: value for name, value in document.items() if name not in dropped}
    return kept | {"question": question, "method": method}


def _more(text: object) -> dict[str, Any]:
    """Return what was typed as JSON: options that the form has no field for."""
    if not isinstance(text, str) or not text.strip():
        return {}
    try:
        found = json.loads(text[:_LONGEST])
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ParameterError('More options must be JSON, such as {"permutations": 999}.')
    if {"dataset", "question"} & found.keys():
        raise ParameterError("More options cannot change the data set or the question.")
    for name in (*_LISTS, "group"):
        given = found.get(name, "")
        items = given if isinstance(given, list) and name in _LISTS else [given]
        if not all(isinstance(item, str) for item in items):
            raise ParameterError(f"{name} must be text, or a list of it.")
    return found
