"""A request for each method that a data set offers: to measure how long answers take.

They are made from the public schema alone, with as many columns as a method takes, since more
columns take longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from privatest.curator.admission import categories_of
from privatest.curator.config import DatasetConfig
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.requests.catalogue import METHODS

__all__ = ["examples"]

# What methods need that no schema says.
_OPTIONS: Mapping[str, Any] = {
    "locations": 20,
    "low": -1,
    "high": 1,
    "points": 500,
}


Document = dict[str, Any]


def examples(dataset: DatasetConfig, rows: int) -> dict[str, list[list[Document]]]:
    """Return requests without a price, by question/method.

    Of each there are alternatives, the largest first: which of them suits is known when it is
    rehearsed. A test of two groups is there twice, for public and for private groups.
    """
    found: dict[str, list[list[Document]]] = {}
    for question, method in sorted(dataset.policy.tests):
        head = {"dataset": dataset.name, "question": question, "method": method}
        kinds = ("public", "private") if question == "two-sample" else ("",)
        found[f"{question}/{method}"] = [
            [
                {**head, **parts, **_options(question, method, dataset, parts, rows)}
                for parts in _parts(question, method, dataset.schema, kind)
            ]
            for kind in kinds
        ]
    return found


def _options(
    question: str, method: str, dataset: DatasetConfig, parts: Mapping[str, Any], rows: int
) -> Document:
    entry = METHODS[question][method]
    usual = {**_OPTIONS, "points": min(_OPTIONS["points"], dataset.policy.points, rows)}
    wanted = {*entry.needed, *({"points"} & entry.options.keys())}
    options = {name: usual[name] for name in wanted if name in usual}
    if entry.outcomes:
        column = dataset.schema.columns[parts["columns"][0]]
        options["success"] = (
            column.upper
            if isinstance(column, NumericColumn)
            else categories_of(dataset.schema, parts["columns"][0])[0]
        )
    return options


def _parts(question: str, method: str, schema: Schema, kind: str) -> Iterator[Document]:
    """Yield columns in the parts of a question."""
    numeric = [n for n, c in schema.columns.items() if isinstance(c, NumericColumn)]
    categorical = [n for n in schema.columns if n not in numeric]
    everything = [*numeric, *categorical]
    if question == "two-sample":
        yield from _two_sample(schema, numeric, categorical, kind)
    elif question == "independence":
        half = max(len(numeric) // 2, 1)
        sides = [(numeric[:half], numeric[half:]), (numeric[:1], numeric[1:2])]
        sides += [(categorical[:1], categorical[1:2]), (everything[:1], everything[1:])]
        if METHODS[question][method].part:
            yield {"x": everything[:1], "y": everything[1:2], "given": everything[2:]}
            return
        yield from ({"x": x, "y": y} for x, y in sides if x and y)
    elif question == "paired":
        yield from ({"before": a, "after": b} for a, b in pairwise(numeric))
    elif question == "fit":
        yield from _fit(method, schema, numeric, categorical)
    else:
        for columns in (everything, numeric, numeric[:1], categorical[:1]):
            if columns:
                yield {"columns": columns}


def _two_sample(
    schema: Schema, numeric: list[str], categorical: list[str], kind: str
) -> Iterator[Document]:
    for group in [n for n in categorical if _membership(schema, n) == kind][:1]:
        labels = categories_of(schema, group)[:2]
        others = [n for n in categorical if n != group]
        for columns in ([*numeric, *others], numeric, numeric[:1], others[:1]):
            if columns:
                yield {"group": group, "groups": labels, "columns": columns}


def _membership(schema: Schema, name: str) -> str:
    column = schema.columns[name]
    assert isinstance(column, CategoricalColumn)
    return column.membership


def _fit(
    method: str, schema: Schema, numeric: list[str], categorical: list[str]
) -> Iterator[Document]:
    for name in numeric:
        column = schema.columns[name]
        assert isinstance(column, NumericColumn)
        width = column.upper - column.lower
        dist = {"dist": f"uniform({column.lower}, {width})"}
        family = METHODS["fit"][method].part == "family"
        yield {"column": name, **({"family": "norm"} if family else dist)}
    for name in categorical:
        yield {"column": name, "shares": "equal"}
