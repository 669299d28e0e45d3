"""Which method suits a question, why, and what to expect of it: by public things only."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from privatest.core.errors import ParameterError
from privatest.data.schema import CategoricalColumn, Schema
from privatest.requests.catalogue import METHODS

__all__ = ["Advice", "advice"]


@dataclass(frozen=True, slots=True)
class Advice:
    """A method that may suit.

    Attributes
    ----------
    question, method : str
        As in the catalogue.
    reason : str
        Why, in a sentence.
    power : str
        What power to expect at this size and price, in words; "" where nobody has computed it.
    """

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
    """Return the methods that may suit, the best first; a curator checks them in this order.

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
        What the answer may cost, as it was typed: it may be no number.
    offered : collection of (question, method)
        What the policy allows.
    """
    rules = {
        "two-sample": _differ,
        "independence": _related,
        "fit": _fits,
        "paired": _changed,
        "mean": _means,
        "release": _published,
    }
    found: dict[str, Advice] = {}
    for method, reason in rules[question](columns, schema):
        found.setdefault(method, Advice(question, method, reason))
    for method, entry in METHODS[question].items():  # what no rule speaks of comes last
        found.setdefault(method, Advice(question, method, f"It is offered: {entry.about}."))
    expected = _expected(question, columns, schema, rows, epsilon)
    ranked = sorted(found.values(), key=lambda each: -expected.get(each.method, ("", -1.0))[1])
    if not expected or next(iter(found)) not in expected:  # a rule knows what tables do not
        ranked = list(found.values())
    told = [replace(each, power=expected.get(each.method, ("",))[0]) for each in ranked]
    return [each for each in told if (question, each.method) in offered]


_MOST = 1e6  # no policy has more
_EFFECTS = {
    "shift": "a shift of {:.2g} standard deviations",
    "dependence": "a correlation of {:.2g}",
    "proportions": "shares that differ by {:.2g}",
}


def _expected(
    question: str, columns: Mapping[str, Any], schema: Schema, rows: int, epsilon: float | str
) -> dict[str, tuple[str, float]]:
    """Return what to expect of methods, in words, and their power: by public tables."""
    from privatest.planning import recommend  # noqa: PLC0415 - it reads its tables

    special = {"given", "success", "family", "shares", "q"} & set(columns)
    group = schema.columns.get(columns.get("group", ""))
    several = len(columns.get("groups", getattr(group, "categories", ("", "")))) > 2
    try:
        price = float(epsilon) / schema.rows_per_person  # a person's rows share it
    except ValueError:  # what somebody typed
        return {}
    if question in ("mean", "release") or special or several or not 0 < price < _MOST:
        return {}
    named = [columns[part] for part in ("columns", "x", "y", "before", "after") if part in columns]
    names = [name for part in named for name in ([part] if isinstance(part, str) else part)]
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
    form = _EFFECTS.get(ranking.looking_for, f"a {ranking.looking_for} of {{:.2g}}")
    seen = form.format(ranking.effect)
    return {
        choice.method: (
            f"At this size and price it sees {seen} with power {choice.power:.2f}.",
            choice.power,
        )
        for choice in ranking.choices
        if choice.power is not None
    }


Suited = Iterator[tuple[str, str]]


def _kinds(names: Sequence[str], schema: Schema) -> tuple[int, int]:
    """Return how many columns are numbers, and how many categories."""
    known = [schema.columns[name] for name in names if name in schema.columns]
    categories = sum(isinstance(column, CategoricalColumn) for column in known)
    return len(known) - categories, categories


def _differ(columns: Mapping[str, Any], schema: Schema) -> Suited:
    group = schema.columns.get(columns.get("group", ""))
    number = len(columns.get("groups", getattr(group, "categories", ("", ""))))
    names = columns.get("columns") or [n for n in schema.columns if n != columns.get("group")]
    if "success" in columns:
        yield "proportion", "One column of successes and failures: their shares are compared."
    match _kinds(names, schema):
        case (1, 0) if number > 2:
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


def _related(columns: Mapping[str, Any], schema: Schema) -> Suited:
    if columns.get("given"):
        yield "gcm", "Other columns are held fixed: what is left of the relation is tested."
    match (
        _kinds(columns.get("x", ()), schema),
        _kinds(columns.get("y", ()), schema),
    ):
        case ((1, 0), (1, 0)):
            yield (
                "spearman",
                "Two numeric columns: ranks find any relation that rises or falls, and the "
                "correlation comes with an interval.",
            )
        case ((0, 1), (0, 1)):
            yield "chi2", "Two categorical columns: their table of counts is released as well."
    yield "hsic", "Any kind of dependence counts, in several columns and with categories."


def _fits(columns: Mapping[str, Any], schema: Schema) -> Suited:
    del schema
    if "family" in columns:
        yield "family", "Location and scale are unknown: they are fitted first."
    if "shares" in columns:
        yield "shares", "The shares of the categories are compared with those that you gave."
    yield "distribution", "The distribution is fully given, so its p-value is exact."


def _changed(columns: Mapping[str, Any], schema: Schema) -> Suited:
    del columns, schema
    yield "wilcoxon", "Signed ranks of the changes: they need no bounds, and large changes count."
    yield "sign", "The signs of the changes alone: it assumes the least."


def _means(columns: Mapping[str, Any], schema: Schema) -> Suited:
    if "success" in columns:
        yield "proportion", "One column of successes and failures: its share, with an interval."
        return
    if "q" in columns:
        yield "quantiles", "You asked for a quantile: it is released with an interval."
    numbers, _ = _kinds(columns.get("columns", ()), schema)
    if numbers:
        yield "moments", "Means of numeric columns, with intervals that hold all at once."
    yield "quantiles", "Means are not offered here; the median of one column is."


def _published(columns: Mapping[str, Any], schema: Schema) -> Suited:
    del columns, schema
    yield "auto", "It chooses by the columns: noisy tables of pairs, or kernels for a few numbers."
    yield "tables", "Rows that fit noisy tables of columns and of pairs of columns."
