"""The questions of the page: their forms, the requests they become, and which method suits."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import ImmutableMultiDict

from privatest.core.errors import ParameterError
from privatest.data.schema import CategoricalColumn, Schema
from privatest.planning import recommend
from privatest.requests.catalogue import METHODS

Fields = ImmutableMultiDict[Any, Any]  # a form that was sent, or the query of an address
ALTERNATIVES = {
    "two-sided": "a difference in either direction",
    "less": "the first is smaller",
    "greater": "the first is larger",
}
_LONGEST = 4000
_LISTS = ("columns", "groups", "x", "y", "given")
_NUMBERS = ("epsilon", "delta", "alpha", "points", "q")


@dataclass(frozen=True, slots=True)
class QuestionForm:
    """A question as people ask it.

    Attributes
    ----------
    question : str
        The catalogue's question.
    words, about : str
        The question, and what it is for.
    fields : tuple of str
        The fields of its form.
    methods : tuple of str
        The methods that answer it; all of the question's if empty.
    without : tuple of str
        Methods that belong to another form.
    """

    question: str
    words: str
    about: str
    fields: tuple[str, ...]
    methods: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def offered(self, tests: Collection[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return the questions and methods of this form that a policy allows."""
        own = self.methods or METHODS[self.question].keys()
        questions = ("two-sample", "mean") if "success" in self.fields else (self.question,)
        return [
            (question, method)
            for question in questions
            for method in METHODS[question]
            if method in own and method not in self.without and (question, method) in tests
        ]


_SHARES = ("proportion", "tost-proportion")
FORMS: Mapping[str, QuestionForm] = {
    "differ": QuestionForm(
        "two-sample",
        "Do two groups differ?",
        "Compare groups of people in one or more columns.",
        ("group", "groups", "columns", "alternative"),
        without=_SHARES,
    ),
    "related": QuestionForm(
        "independence",
        "Are columns related?",
        "Ask whether some columns say anything about others.",
        ("x", "y", "given", "alternative"),
    ),
    "fits": QuestionForm(
        "fit",
        "Does a column follow a distribution?",
        "Compare one column with a distribution that you name.",
        ("column", "dist", "family", "shares"),
    ),
    "change": QuestionForm(
        "paired",
        "Did it change from before to after?",
        "Compare two measurements of the same people.",
        ("before", "after", "alternative"),
    ),
    "means": QuestionForm(
        "mean",
        "What is the mean, or the median?",
        "Estimate means or a quantile, with intervals.",
        ("columns", "q"),
        methods=("moments", "quantiles"),
    ),
    "proportions": QuestionForm(
        "mean",
        "How many have it?",
        "Estimate a proportion, or compare that of two groups.",
        ("outcome", "success", "group", "groups", "alternative"),
        methods=_SHARES,
    ),
    "publish": QuestionForm(
        "release",
        "Publish synthetic data",
        "Release made-up rows that keep what the data says about columns and pairs.",
        ("columns", "points"),
    ),
}


def question_words(request: Mapping[str, Any]) -> str:
    """Return the question of a request as people ask it."""
    question = request.get("question")
    if request.get("method") in _SHARES:
        return FORMS["proportions"].words
    words = (form.words for form in FORMS.values() if form.question == question)
    return next(words, str(question))


# --- from a form to a request ---------------------------------------------------------------


def request_of(form: QuestionForm, dataset: str, fields: Fields) -> dict[str, Any]:
    """Return the request of a form, without a method where none is chosen."""
    request: dict[str, Any] = {"dataset": dataset, "question": form.question}
    for name in (*form.fields, "epsilon", "delta", "alpha"):
        value = _value(name, fields)
        if value not in (None, "", []):
            request[name] = value
    if "outcome" in request:
        request["columns"] = [request.pop("outcome")]
    if "success" in form.fields and "group" in request:
        request["question"] = "two-sample"
    if form.question == "release":
        request.pop("alpha", None)
    where = {
        str(key).removeprefix("where-"): list(map(str, fields.getlist(key)))
        for key in fields
        if str(key).startswith("where-")
    }
    return request | ({"where": where} if where else {}) | _more_options(fields.get("more"))


def with_method(request: Mapping[str, Any], question: str, method: str) -> dict[str, Any]:
    """Return the request with a method, without the form's options that it does not take."""
    dropped = {"alternative", "success", "points", "q"} - METHODS[question][method].options.keys()
    kept = {name: value for name, value in request.items() if name not in dropped}
    return kept | {"question": question, "method": method}


def _value(name: str, fields: Fields) -> Any:
    if name in _LISTS:
        return [str(each) for each in fields.getlist(name) if each]
    text = fields.get(name)
    if not isinstance(text, str):
        return None
    if name not in _NUMBERS:
        return text.strip()
    try:
        number = float(text)
    except ValueError:
        return text  # the curator says what is wrong with it
    return int(number) if number.is_integer() and name == "points" else number


def _more_options(text: object) -> dict[str, Any]:
    """Read the field for options as JSON, for which the form has no other field."""
    if not isinstance(text, str) or not text.strip():
        return {}
    try:
        options = json.loads(text[:_LONGEST])
    except (ValueError, RecursionError):
        options = None
    if not isinstance(options, dict):
        raise ParameterError('More options must be JSON, such as {"permutations": 999}.')
    if {"dataset", "question"} & options.keys():
        raise ParameterError("More options cannot change the data set or the question.")
    for name in (*_LISTS, "group"):
        value = options.get(name, "")
        items = value if isinstance(value, list) and name in _LISTS else [value]
        if not all(isinstance(item, str) for item in items):
            raise ParameterError(f"{name} must be text, or a list of it.")
    return options


# --- which method suits, from public facts only ---------------------------------------------


@dataclass(frozen=True, slots=True)
class Advice:
    """A method that may suit: the reason, and the power to expect if the tables have it."""

    question: str
    method: str
    reason: str
    power: str = ""


def advice(
    question: str,
    columns: Mapping[str, Any],
    *,
    schema: Schema,
    rows: int,
    epsilon: float | str,
    offered: Collection[tuple[str, str]],
) -> list[Advice]:
    """Return the methods that may suit, the best first.

    Parameters
    ----------
    question : str
        A question of the catalogue.
    columns : mapping
        Which columns play which part, as in a request.
    schema : Schema
        The public description of all columns.
    rows : int
        The public number of rows.
    epsilon : float or str
        The price as it was typed: it may be no number.
    offered : collection of (question, method)
        What the policy allows.
    """
    reasons = dict(_RULES[question](columns, schema))
    for method, entry in METHODS[question].items():  # those without a rule come last
        reasons.setdefault(method, f"It is offered: {entry.about}.")
    expected = _expected_power(question, columns, schema, rows, epsilon)
    ranked = list(reasons)
    if ranked[0] in expected:  # else a rule knows what the tables do not
        ranked.sort(key=lambda method: -expected.get(method, ("", -1.0))[1])
    return [
        Advice(question, method, reasons[method], expected.get(method, ("", 0.0))[0])
        for method in ranked
        if (question, method) in offered
    ]


_MOST_EPSILON = 1e6  # no policy has more
_EFFECTS = {
    "shift": "a shift of {:.2g} standard deviations",
    "dependence": "a correlation of {:.2g}",
    "proportions": "shares that differ by {:.2g}",
}


def _expected_power(
    question: str, columns: Mapping[str, Any], schema: Schema, rows: int, epsilon: float | str
) -> dict[str, tuple[str, float]]:
    """Return the power of methods by the tables, in words and as a number."""
    special = {"given", "success", "family", "shares", "q"} & set(columns)
    group = schema.columns.get(columns.get("group", ""))
    several = _group_count(columns, schema) > 2
    try:
        price = float(epsilon) / schema.rows_per_person  # a person's rows share it
    except ValueError:
        return {}
    if question in ("mean", "release") or special or several or not 0 < price < _MOST_EPSILON:
        return {}
    parts = [columns[part] for part in ("columns", "x", "y", "before", "after") if part in columns]
    names = [name for part in parts for name in ([part] if isinstance(part, str) else part)]
    known = [name for name in dict.fromkeys(names) if name in schema.columns]
    sizes = (rows // 2, rows - rows // 2) if question == "two-sample" else (rows,)
    try:
        ranking = recommend(
            question,
            sizes,
            schema.select(known) if known else 1,
            epsilon=price,
            membership=getattr(group, "membership", "private"),
        )
    except ParameterError:  # no test in the tables for these columns, or too few rows
        return {}
    if ranking.effect is None:
        return {}
    effect = _EFFECTS.get(ranking.looking_for, f"a {ranking.looking_for} of {{:.2g}}")
    words = f"At this size and price it sees {effect.format(ranking.effect)} with power"
    return {
        choice.method: (f"{words} {choice.power:.2f}.", choice.power)
        for choice in ranking.choices
        if choice.power is not None
    }


def _group_count(columns: Mapping[str, Any], schema: Schema) -> int:
    group = schema.columns.get(columns.get("group", ""))
    return len(columns.get("groups", getattr(group, "categories", ("", ""))))


def _kinds(names: Sequence[str], schema: Schema) -> tuple[int, int]:
    """Return how many columns are numeric, and how many categorical."""
    known = [schema.columns[name] for name in names if name in schema.columns]
    categories = sum(isinstance(column, CategoricalColumn) for column in known)
    return len(known) - categories, categories


Reasons = Iterator[tuple[str, str]]


def _two_sample(columns: Mapping[str, Any], schema: Schema) -> Reasons:
    names = columns.get("columns") or [n for n in schema.columns if n != columns.get("group")]
    if "success" in columns:
        yield "proportion", "One column of successes and failures: their shares are compared."
    match _kinds(names, schema):
        case (1, 0) if _group_count(columns, schema) > 2:
            yield "kruskal", "One numeric column and several groups: ranks need no bounds."
        case (1, 0):
            yield (
                "mann-whitney",
                "One numeric column: ranks find a shift whatever the shape of the values.",
            )
            yield "ks", "One numeric column: its p-value is exact, and any difference counts."
        case (0, 1):
            yield "tv", "One categorical column: the shares of its categories are compared."
    yield "mmd", "Whole distributions of these columns are compared, not only their means."


def _independence(columns: Mapping[str, Any], schema: Schema) -> Reasons:
    if columns.get("given"):
        yield "gcm", "Other columns are held fixed: what is left of the relation is tested."
    match _kinds(columns.get("x", ()), schema), _kinds(columns.get("y", ()), schema):
        case ((1, 0), (1, 0)):
            yield (
                "spearman",
                "Two numeric columns: ranks find any relation that rises or falls, and the "
                "correlation comes with an interval.",
            )
        case ((0, 1), (0, 1)):
            yield "chi2", "Two categorical columns: their table of counts is released as well."
    yield "hsic", "Any kind of dependence counts, in several columns and with categories."


def _fit(columns: Mapping[str, Any], _: Schema) -> Reasons:
    if "family" in columns:
        yield "family", "Location and scale are unknown: they are fitted first."
    if "shares" in columns:
        yield "shares", "The shares of the categories are compared with those that you gave."
    yield "distribution", "The distribution is fully given, so its p-value is exact."


def _paired(_: Mapping[str, Any], __: Schema) -> Reasons:
    yield "wilcoxon", "Signed ranks of the changes: they need no bounds, and large changes count."
    yield "sign", "The signs of the changes alone: it assumes the least."


def _mean(columns: Mapping[str, Any], schema: Schema) -> Reasons:
    if "success" in columns:
        yield "proportion", "One column of successes and failures: its share, with an interval."
        return
    if "q" in columns:
        yield "quantiles", "You asked for a quantile: it is released with an interval."
    if _kinds(columns.get("columns", ()), schema)[0]:
        yield "moments", "Means of numeric columns, with intervals that hold all at once."
    if "q" not in columns:
        yield "quantiles", "Means are not offered here; the median of one column is."


def _release(_: Mapping[str, Any], __: Schema) -> Reasons:
    yield "auto", "It chooses by the columns: noisy tables of pairs, or kernels for a few numbers."
    yield "tables", "Rows that fit noisy tables of columns and of pairs of columns."


_RULES = {
    "two-sample": _two_sample,
    "independence": _independence,
    "fit": _fit,
    "paired": _paired,
    "mean": _mean,
    "release": _release,
}
