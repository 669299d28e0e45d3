"""What an analyst asks a curator, and whether they may. Nothing here touches data.

An analyst writes only public words. What is private, and what is public, is the custodian's to
say: in the schema, never in a request.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from privatest.core.errors import ParameterError, PrivacyError, PrivatestError
from privatest.core.validation import integer_at_least
from privatest.curator.config import MOST_POINTS, DatasetConfig
from privatest.curator.steady import refuse_unsteady
from privatest.data.categories import category_codes, spelling
from privatest.data.schema import CategoricalColumn, Schema
from privatest.questions import Prepared, Request, prepare

__all__ = ["Admitted", "Inquiry", "admit", "categories_of", "schema_digest"]

_LONGEST_TEXT, _LONGEST_LIST = 500, 100


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A request about one data set.

    Attributes
    ----------
    dataset : str
        Its name.
    request : Request
        What is asked.
    where : mapping of str to tuple of str
        Which rows are meant, by categories of public columns; empty is all.
    """

    dataset: str
    request: Request
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what is not public words."""
        name: object = self.dataset
        if not isinstance(name, str) or not name:
            raise ParameterError("dataset must be the name of a data set.")
        for part, value in {**self.request.parts, **self.request.options}.items():
            _plain_words(part, value)
        where: object = self.where
        if not isinstance(where, Mapping):
            raise ParameterError('where must be a table, such as {"region": "north"}.')
        labels = {str(name): _listed(name, value) for name, value in where.items()}
        object.__setattr__(self, "where", MappingProxyType(dict(sorted(labels.items()))))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Inquiry:
        """Read a flat document: a request with ``dataset`` and, where wanted, ``where``."""
        if not isinstance(document, Mapping):
            raise ParameterError("request must be a table of names and values.")
        rest = dict(document)
        dataset, where = rest.pop("dataset", ""), rest.pop("where", None)
        for name, value in rest.items():
            if name not in ("epsilon", "delta"):  # a Budget reads these, decimals too
                _plain_words(str(name), value)
        with _without_flags():
            request = Request.from_dict(rest)
        return cls(dataset, request, {} if where is None else where)

    def to_dict(self) -> dict[str, Any]:
        """Return the flat document."""
        where = {name: list(labels) for name, labels in self.where.items()}
        filtered = {"where": where} if where else {}
        return {"dataset": self.dataset, **self.request.to_dict(), **filtered}


def schema_digest(schema: Schema) -> str:
    """Return a fingerprint of what a schema says, however its file is written."""
    return hashlib.sha256(schema.to_toml().encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Admitted:
    """An inquiry that fits its data set's schema and policy.

    Attributes
    ----------
    inquiry : Inquiry
        What was asked.
    prepared : Prepared
        How it is answered.
    codes : mapping of str to frozenset of int
        The filter, by codes of the schema's categories.
    part : str or None
        The part of the declared partition that it is about; None is all of the data.
    """

    inquiry: Inquiry
    prepared: Prepared
    codes: Mapping[str, frozenset[int]]
    part: str | None

    @property
    def words(self) -> str:
        """What is compared with what, and for whom."""
        where = [f"{name} = {' or '.join(labels)}" for name, labels in self.inquiry.where.items()]
        return "; where ".join([self.prepared.words, *([" and ".join(where)] if where else [])])

    @property
    def names(self) -> list[str]:
        """Columns to read."""
        return [*self.prepared.names, *(n for n in self.codes if n not in self.prepared.names)]


def admit(inquiry: Inquiry, dataset: DatasetConfig) -> Admitted:
    """Check an inquiry against the public schema and the policy."""
    request, schema = inquiry.request, dataset.schema
    if "membership" in request.parts:
        raise PrivacyError(
            "membership is the custodian's to declare, in the schema; leave it out of the request."
        )
    _allow(request, dataset)
    refuse_unsteady(request)
    group = request.parts.get("group")
    if group is not None and group not in schema.columns:
        raise ParameterError(
            f"group column {group!r} is not in the schema, which has {', '.join(schema.columns)}."
        )
    if len(request.parts.get("groups", ("", ""))) != 2:
        raise ParameterError("groups must be a list of two.")
    prepared = _prepared(request, schema)
    unknown = next((name for name in prepared.names if name not in schema.columns), None)
    if unknown is not None:
        raise ParameterError(f"column {unknown!r} is not in the schema of {dataset.name}.")
    codes = {name: _codes(name, labels, schema) for name, labels in inquiry.where.items()}
    part = None
    if dataset.partition in codes and len(codes[dataset.partition]) == 1:
        (code,) = codes[dataset.partition]
        part = categories_of(schema, dataset.partition)[code]
    return Admitted(inquiry, prepared, codes, part)


@contextmanager
def _without_flags() -> Iterator[None]:
    """Drop what an error says about the command line: an analyst writes a request."""
    try:
        yield
    except PrivatestError as error:
        error.with_flags("")
        raise


def _prepared(request: Request, schema: Schema) -> Prepared:
    try:
        with _without_flags():
            return prepare(request, schema)
    except PrivatestError:
        raise
    except Exception as error:  # a value of a wrong type; no data was touched
        raise ParameterError(
            f"the request cannot be read ({type(error).__name__}): is each value of its kind?"
        ) from None


def _allow(request: Request, dataset: DatasetConfig) -> None:
    policy = dataset.policy
    if (request.question, request.method) not in policy.tests:
        offered = sorted({f"{question}/{method}" for question, method in policy.tests})
        raise ParameterError(
            f"{request.question}/{request.method} is not offered for {dataset.name}; "
            f"offered are {', '.join(offered)}."
        )
    for name in ("epsilon", "delta"):
        asked = getattr(request.budget, name)
        most = getattr(policy.largest or dataset.budget, name)
        if asked > most:
            raise ParameterError(
                f"{name} must be at most {most:f} in one request for {dataset.name}."
            )
    if dataset.each is not None and request.budget != dataset.each:
        raise ParameterError(f"every request for {dataset.name} must cost {dataset.each}.")
    usual = {"permutations": 1, "points": MOST_POINTS}  # where nobody says
    for name, number in usual.items():
        most = getattr(policy, name)
        if name not in request.entry.options:
            continue
        if integer_at_least(name, request.options.get(name, number), 1) > most:
            given = "" if name in request.options else "given, and "
            raise ParameterError(f"{name} must be {given}at most {most}.")


def _codes(name: str, labels: tuple[str, ...], schema: Schema) -> frozenset[int]:
    """Return which categories pass; only a public column may decide that."""
    column = schema.columns.get(name)
    if column is None:
        raise ParameterError(f"where: column {name!r} is not in the schema.")
    if not isinstance(column, CategoricalColumn) or column.membership != "public":
        raise PrivacyError(
            f"where: column {name!r} is private, so it cannot choose rows: how many pass would "
            "tell who does, and that number is not hidden. Only a categorical column with "
            'membership = "public" in the schema can.'
        )
    codes = category_codes(column.categories)
    unknown = next((label for label in labels if label not in codes), None)
    if unknown is not None:
        raise ParameterError(f"where: {unknown!r} is not a category of column {name!r}.")
    return frozenset(codes[label] for label in labels)


def categories_of(schema: Schema, name: str) -> list[str]:
    """Return how the categories of a column are written."""
    column = schema.columns[name]
    assert isinstance(column, CategoricalColumn)
    return [spelling(category) for category in column.categories]


def _listed(name: object, value: object) -> tuple[str, ...]:
    """Return the labels of a filter, sorted: one value, or a list of them."""
    values = value if isinstance(value, (list, tuple)) else [value]
    if not values or not all(isinstance(item, (str, bool, int, float)) for item in values):
        raise ParameterError(f"where: {name!r} must be a category, or a list of categories.")
    _plain_words(f"where: {name}", list(values))
    return tuple(sorted({spelling(item) for item in values}))


def _plain_words(name: str, value: object) -> None:
    """Refuse what is not text, a number, true or false, or a list: objects could be code."""
    items = value if isinstance(value, (list, tuple)) else [value]
    if len(items) > _LONGEST_LIST:
        raise ParameterError(f"{name} must have at most {_LONGEST_LIST} entries.")
    for item in items:
        if isinstance(item, str) and len(item) > _LONGEST_TEXT:
            raise ParameterError(f"{name} must have at most {_LONGEST_TEXT} characters.")
        finite = not isinstance(item, float) or math.isfinite(item)
        if type(item) not in (str, int, float, bool, type(None)) or not finite:
            raise ParameterError(
                f"{name} must be text, numbers, true or false: a curator runs no code of others."
            )
