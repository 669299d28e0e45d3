"""The public description of data: columns, bounds, categories, and how many rows a person has.

Nothing here is computed from data. A schema is written by somebody who knows what is public,
by hand or in a TOML file, and data is then fitted to it by :mod:`privatest.data.samples`.
"""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.privacy import privacy_unit
from privatest.core.validation import integer_at_least, listed, number, one_of, reject
from privatest.data.categories import Category, category_codes, spelling
from privatest.data.domain import Box, Domain
from privatest.data.limits import PAIR, check_bounds

__all__ = [
    "CategoricalColumn",
    "Column",
    "Membership",
    "NumericColumn",
    "Schema",
    "parse_bounds",
    "toml_key",
]

Membership = Literal["private", "public"]
_MOST_ATOMS = 64


@dataclass(frozen=True, slots=True)
class NumericColumn:
    """A column of numbers within public bounds.

    Parameters
    ----------
    lower, upper : float
        Public bounds; values outside, infinite ones too, are clipped to them.
    integer : bool
        Whether a value that is not an integer is refused.
    missing : float or "refuse"
        What a missing value becomes: a public number within the bounds, or an error.
    atoms : tuple of float
        Values that are known to be frequent by themselves, such as 0 visits: releases count
        them apart from the numbers around them.
    """

    lower: float
    upper: float
    integer: bool = False
    missing: float | Literal["refuse"] = "refuse"
    atoms: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what does not describe a range."""
        lower, upper = _finite("bounds", self.lower), _finite("bounds", self.upper)
        check_bounds(lower, upper)
        if not isinstance(self.integer, bool):
            reject("integer", "true or false", self.integer)
        if self.integer and not (lower.is_integer() and upper.is_integer()):
            raise ParameterError(
                f"bounds must be integers, since integer = true; got {lower:.15g} and {upper:.15g}."
            )
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        if self.missing != "refuse":
            value = _finite("missing", self.missing, ' or "refuse"')
            if not self._may_hold(value):
                reject("missing", 'a value that the column may have, or "refuse"', self.missing)
            object.__setattr__(self, "missing", value)
        object.__setattr__(self, "atoms", self._checked_atoms())

    def _may_hold(self, value: float) -> bool:
        within = self.lower <= value <= self.upper
        return within and (value.is_integer() or not self.integer)

    def _checked_atoms(self) -> tuple[float, ...]:
        given: object = self.atoms
        if not isinstance(given, Sequence) or isinstance(given, str):
            reject("atoms", "a list of values that the column may have", given)
        atoms = sorted({_finite("atoms", value) for value in given})
        if len(atoms) < len(given) or not all(map(self._may_hold, atoms)):
            reject("atoms", "different values that the column may have", given)
        if len(atoms) > _MOST_ATOMS:
            reject("atoms", f"at most {_MOST_ATOMS}", len(atoms))
        return tuple(atoms)


@dataclass(frozen=True, slots=True)
class CategoricalColumn:
    """A column with a public list of categories.

    Parameters
    ----------
    categories : tuple of str, int, float or bool
        At least two; a value outside them is refused.
    membership : {"private", "public"}
        Whether everybody may know who is in which category, where the column splits groups.
    missing : category or "refuse"
        The category that a missing value is counted to, or an error.
    """

    categories: tuple[Category, ...]
    membership: Membership = "private"
    missing: Category = "refuse"

    def __post_init__(self) -> None:
        """Refuse what does not describe a choice."""
        given: object = self.categories
        if not isinstance(given, Sequence) or isinstance(given, str) or len(given) < 2:
            reject("categories", "a list of at least two", given)
        categories = tuple(_category(value) for value in given)
        codes = category_codes(categories)
        one_of("membership", self.membership, ("private", "public"))
        object.__setattr__(self, "categories", categories)
        if self.missing != "refuse":
            object.__setattr__(self, "missing", _category(self.missing, "missing"))
            if spelling(self.missing) not in codes:
                reject("missing", 'one of the categories or "refuse"', self.missing)


Column = NumericColumn | CategoricalColumn


@dataclass(frozen=True, slots=True)
class Schema:
    """The public description of a table.

    Parameters
    ----------
    columns : mapping of str to Column
        Columns that are used, in their order. A table may have others.
    rows_per_person : int
        The most rows that one person has; every sensitivity grows by this factor.
    id_column : str or None
        Whose row it is. Data in which somebody has more rows than that is refused.

    Examples
    --------
    >>> schema = Schema.from_bounds({"visits": (0, 80)}, rows_per_person=5)
    >>> schema.encode({"visits": [0, 20, 1000]}).tolist()
    [[0.0], [0.25], [1.0]]
    >>> schema.unit
    'person with at most 5 rows'
    """

    columns: Mapping[str, Column]
    rows_per_person: int = 1
    id_column: str | None = None

    def __post_init__(self) -> None:
        """Refuse an empty description, and freeze the mapping."""
        given: object = self.columns
        if not isinstance(given, Mapping) or not given:
            reject("columns", "a table that describes at least one column", given)
        for name, column in given.items():
            if not isinstance(name, str) or not isinstance(column, Column):
                reject(f"column {name!r}", "a name with a Numeric- or CategoricalColumn", column)
        integer_at_least("rows_per_person", self.rows_per_person, 1)
        if (who := self.id_column) is not None and (who in (*given, "") or type(who) is not str):
            reject("id_column", "the name of a column that is not described: nobody tests it", who)
        object.__setattr__(self, "columns", MappingProxyType(dict(given)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Allow pickling and copying, which a mapping proxy does not."""
        return type(self), (dict(self.columns), self.rows_per_person, self.id_column)

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Schema:
        """Read the file at ``path``; errors name the column and the key."""
        try:
            text = Path(path).read_text(encoding="utf-8-sig")  # editors may add a mark
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", "it is not text in UTF-8")
            raise ParameterError(f"schema {Path(path).name} cannot be read: {reason}.") from None
        return cls.from_text(text)

    @classmethod
    def from_text(cls, text: str) -> Schema:
        """Read TOML text."""
        try:
            document = tomllib.loads(text)
        except ValueError as error:  # also for an integer of thousands of digits
            raise ParameterError(f"schema is not valid TOML: {error}.") from None
        _known(document, ("rows_per_person", "id_column", "columns"))
        columns = document.get("columns")
        if isinstance(columns, dict):
            document["columns"] = {name: _column(name, entry) for name, entry in columns.items()}
        return cls(**{"columns": {}} | document)

    @classmethod
    def from_bounds(
        cls, bounds: Mapping[str, Sequence[float]], *, rows_per_person: int = 1
    ) -> Schema:
        """Describe numeric columns by their bounds."""
        columns = {}
        for name, pair in bounds.items():
            with _naming(name):
                columns[name] = NumericColumn(*_pair(pair))
        return cls(columns, rows_per_person)

    @property
    def domain(self) -> Domain:
        """The set that encoded rows lie in."""
        columns = self.columns.values()
        return Domain(tuple(len(getattr(column, "categories", ())) for column in columns))

    @property
    def box(self) -> Box:
        """The set that rows lie in, in their own units."""
        ends = [
            (column.lower, column.upper, column.integer)
            if isinstance(column, NumericColumn)
            else (0.0, len(column.categories) - 1.0, True)
            for column in self.columns.values()
        ]
        lower, upper, whole = zip(*ends, strict=True)
        return Box(np.array(lower), np.array(upper), np.array(whole))

    @property
    def unit(self) -> str:
        """What is hidden: a row, or a person with all of theirs."""
        return privacy_unit(self.rows_per_person)

    @property
    def categorical_names(self) -> tuple[str, ...]:
        """Columns to read from a CSV file as text, so that "01" stays "01"."""
        return tuple(name for name in self.columns if hasattr(self.columns[name], "categories"))

    def select(self, names: Iterable[str]) -> Schema:
        """Return the schema of some columns, in the order of ``names``, without ids."""
        chosen = [names] if isinstance(names, str) else list(names)
        for name in {*chosen} - {*self.columns}:
            reject("columns", f"among the declared ones ({listed(self.columns)})", name)
        if not chosen or len(set(chosen)) < len(chosen):
            reject("columns", "at least one, and each only once", chosen)
        return Schema({name: self.columns[name] for name in chosen}, self.rows_per_person)

    def encode(self, table: object) -> NDArray[np.float64]:
        """Return the rows of a table (Arrow, pandas, Polars or a mapping) as floats.

        Numbers are clipped to their bounds and mapped to [0, 1], categories become 0, 1, ...
        A column that breaks its rule is refused; the message never holds a value or a row.
        """
        from privatest.data.samples import encode_table  # noqa: PLC0415 - it imports this module

        return encode_table(self, table)

    def decode(
        self, rows: NDArray[np.float64], *, integers: bool = True
    ) -> dict[str, NDArray[Any]]:
        """Return encoded rows as columns in their own units and categories.

        With ``integers=False`` a point between two integers of an integer column stays there.
        """
        numbers, columns = self.box.at(rows, integers=integers), {}
        for index, (name, column) in enumerate(self.columns.items()):
            columns[name] = numbers[:, index].copy()
            if isinstance(column, CategoricalColumn):
                kinds = {type(category) for category in column.categories}
                dtype = None if len(kinds) == 1 and str not in kinds else object
                codes = rows[:, index].astype(np.intp)
                columns[name] = np.array(column.categories, dtype=dtype)[codes]
            elif column.integer and integers:
                columns[name] = columns[name].astype(np.int64)
        return columns

    def to_toml(self) -> str:
        """Return the schema as TOML; :meth:`from_text` reads it back."""
        who = "" if self.id_column is None else f"id_column = {_toml(self.id_column)}\n"
        parts = [f"rows_per_person = {self.rows_per_person}\n{who}"]
        for name, column in self.columns.items():
            keys: dict[str, object]
            if isinstance(column, NumericColumn):
                bounds = [column.lower, column.upper]
                keys = {"type": "numeric", "bounds": bounds, "integer": column.integer}
                if column.atoms:
                    keys["atoms"] = list(column.atoms)
            else:
                keys = {"type": "categorical", "categories": list(column.categories)}
                keys["membership"] = column.membership
            keys["missing"] = column.missing
            lines = "".join(f"{key} = {_toml(value)}\n" for key, value in keys.items())
            parts.append(f"[columns.{toml_key(name)}]\n{lines}")
        return "\n".join(parts)


def parse_bounds(text: str) -> tuple[str, float, float]:
    """Read bounds as they are written on the command line.

    Examples
    --------
    >>> parse_bounds("visits=0:77")
    ('visits', 0.0, 77.0)
    """
    name, _, pair = text.rpartition("=")
    try:
        lower, upper = (float(part) for part in pair.split(":") if name)
    except ValueError:
        reject("bounds", "NAME=LOWER:UPPER, for example visits=0:77", text)
    with _naming(name):
        column = NumericColumn(lower, upper)
    return name, column.lower, column.upper


def _finite(name: str, value: object, otherwise: str = "") -> float:
    try:
        return number(name, value)
    except (ParameterError, OverflowError):  # an integer may be too large for a float
        reject(name, f"finite numbers{otherwise}", value)


def _category(value: object, name: str = "categories") -> Category:
    if isinstance(value, np.generic):
        value = value.item()
    finite = not isinstance(value, float) or math.isfinite(value)
    if not isinstance(value, (str, int, float)) or not finite:
        reject(name, "text, finite numbers or true and false", value)
    return value


@contextmanager
def _naming(column: str) -> Iterator[None]:
    """Say which column a parameter error is about."""
    try:
        yield
    except ParameterError as error:
        raise ParameterError(f"column {column!r}: {error}") from None


def _pair(value: object) -> tuple[Any, Any]:
    if not isinstance(value, (Sequence, np.ndarray)) or isinstance(value, str) or len(value) != 2:
        reject("bounds", PAIR, value)
    return value[0], value[1]


def _known(keys: Iterable[str], allowed: Sequence[str]) -> None:
    for key in keys:
        if key not in allowed:
            raise ParameterError(f"unknown key {key!r}; the keys are {', '.join(allowed)}.")


def _column(name: str, entry: object) -> Column:
    """Return the column of one TOML table."""
    with _naming(name):
        if not isinstance(entry, dict):
            reject("description", "a table with a type", entry)
        keys = dict(entry)
        kind = one_of("type", keys.pop("type", None), ("numeric", "categorical"))
        needed = "bounds" if kind == "numeric" else "categories"
        optional = ("integer", "atoms") if kind == "numeric" else ("membership",)
        _known(keys, (needed, *optional, "missing"))
        value = keys.pop(needed, [])
        if value == []:
            raise ParameterError(
                f"{needed} must be filled in, from what is publicly known and not from the data; "
                "or remove the column from the schema, if nobody will test it."
            )
        if kind == "numeric":
            return NumericColumn(*_pair(value), **keys)
        return CategoricalColumn(value, **keys)


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_toml(item) for item in value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # what cannot be printed is escaped: a file's column names may end up on a terminal
        return "".join(map(_escaped, json.dumps(value, ensure_ascii=False)))
    return repr(value).removesuffix(".0")


def _escaped(char: str) -> str:
    if char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def toml_key(name: str) -> str:
    """Write a name as a key of TOML."""
    return name if re.fullmatch(r"[\w-]+", name, re.ASCII) else _toml(name)
