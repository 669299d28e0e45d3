"""The public description of data: columns, bounds, categories and rows per person.

Nothing here is computed from data. A schema is written by somebody who knows what is public, by
hand or as a TOML file; :mod:`privatest.data.encoding` encodes data by it.

Values with the same spelling are the same category: 1, 1.0 and the text "1"; true and "TRUE". A
category that a schema declares as a number matches every way to write that number ("1.0", "01",
"1e0", " 1"); a category that is text matches literally. A group that a request names has no type:
if it is a plain number, "1.0" matches "1", but "01" is a code and does not.
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
from numbers import Integral
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.privacy import privacy_unit
from privatest.core.validation import integer_at_least, listed, number, one_of, reject

if TYPE_CHECKING:
    import pyarrow as pa

Category = str | int | float | bool
Membership = Literal["private", "public"]

LABEL_TYPES = ("bool", "string", "large_string", "string_view")  # of Arrow
# How missing values are spelled in text; a declared category of the same spelling wins.
MISSING_TEXT = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")
UNKNOWN, MISSING = -1, -2

_NUMERAL = re.compile(r"[+-]?(\d{1,30}\.?\d{0,30}|\.\d{1,30})([eE][+-]?\d{1,3})?", re.ASCII)
_PLAIN_NUMERAL = re.compile(r"-?(0|[1-9]\d{0,29})(\.\d{1,30})?", re.ASCII)
_MOST_ATOMS = 64
_MOST_CELLS = 1 << 13  # of a grid
_PAIR = "two finite numbers, the lower below the upper"
_NARROWEST = 1e-150

# --- categories -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Categories:
    """Codes of categories, and the values that mean them.

    Attributes
    ----------
    codes : mapping of str to int
        The code of each category by its spelling.
    numbers : frozenset of int
        Codes of categories that text may spell in several ways.
    numeral : pattern
        Those spellings.
    """

    codes: Mapping[str, int]
    numbers: frozenset[int]
    numeral: re.Pattern[str]

    @classmethod
    def declared(cls, categories: Sequence[Category]) -> Categories:
        """Return the categories of a schema."""
        numbers = (code for code, value in enumerate(categories) if not isinstance(value, str))
        return cls(category_codes(categories), frozenset(numbers), _NUMERAL)

    @classmethod
    def labelled(cls, labels: Sequence[str]) -> Categories:
        """Return the groups that a request names."""
        numbers = (code for code, label in enumerate(labels) if _PLAIN_NUMERAL.fullmatch(label))
        codes = {label_spelling(label): code for code, label in enumerate(labels)}
        return cls(codes, frozenset(numbers), _PLAIN_NUMERAL)

    def code_of(self, value: Any) -> int:
        """Return the code of the category that a value means, UNKNOWN or MISSING."""
        if value is None or value != value:  # noqa: PLR0124 - NaN
            return MISSING
        code = self.codes.get(spelling(value), UNKNOWN)
        if code != UNKNOWN or not isinstance(value, str):
            return code
        if value in MISSING_TEXT:
            return MISSING
        text = value.strip() if self.numeral is _NUMERAL else value
        code = self.codes.get(_number_spelling(text, self.numeral), UNKNOWN)
        return code if code in self.numbers else UNKNOWN


def label_spelling(label: str) -> str:
    """Spell a label of a request: "1.0" is "1", and "01" is "01"."""
    return _number_spelling(label, _PLAIN_NUMERAL) or spelling(label)


def _number_spelling(text: str, numeral: re.Pattern[str]) -> str:
    """Spell the number that a text is, or return ""."""
    if not numeral.fullmatch(text):
        return ""
    return spelling(float(text) if set(text) & set(".eE") else int(text))


def spelling(value: Any) -> str:
    """Spell a category or a value so that equal meanings are equal text.

    1, 1.0 and "1" are "1"; True, "True" and "TRUE" are "true"; "01" stays "01".
    """
    if isinstance(value, str):
        return value.lower() if value.lower() in {"true", "false"} else value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    value = float(value)
    return str(int(value)) if value.is_integer() else repr(value)


def category_codes(categories: Sequence[Category]) -> dict[str, int]:
    """Return the code 0, 1, ... of each category by its spelling."""
    codes = {spelling(category): code for code, category in enumerate(categories)}
    if len(codes) < len(categories):
        reject("categories", "different from each other", list(categories))
    return codes


def is_number(kind: pa.DataType) -> bool:
    """Whether an Arrow type holds numbers."""
    import pyarrow.types as kinds  # noqa: PLC0415

    return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind))


# --- domain ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Domain:
    """The public set of encoded rows: numbers in [0, 1], categories as 0, 1, ...

    Parameters
    ----------
    levels : tuple of int
        For each column 0 if it is numeric, else its number of categories.
    bounded : bool
        Whether numeric columns lie in [0, 1]; else they keep their units and lie anywhere.
    """

    levels: tuple[int, ...]
    bounded: bool = True

    @classmethod
    def anywhere(cls, width: int) -> Domain:
        """Return the domain of numeric columns without bounds."""
        return cls((0,) * width, bounded=False)

    @property
    def dimension(self) -> int:
        """Number of columns."""
        return len(self.levels)

    @property
    def numeric(self) -> list[int]:
        """Indices of numeric columns."""
        return [index for index, level in enumerate(self.levels) if level == 0]

    @property
    def categorical(self) -> list[int]:
        """Indices of categorical columns."""
        return [index for index, level in enumerate(self.levels) if level > 0]

    def points(self, count: int) -> NDArray[np.float64]:
        """Return ``count`` public rows spread evenly over the domain.

        The additive recurrence of Roberts on the roots of x^(d+1) = x + 1: deterministic,
        low discrepancy, any dimension. A category takes its equal share of [0, 1].
        """
        if not self.bounded:
            raise ParameterError("bounds must be given: an unbounded domain has no even points.")
        root = 2.0
        for _ in range(64):
            root = (1 + root) ** (1 / (self.dimension + 1))
        steps = root ** -np.arange(1.0, self.dimension + 1)
        unit = (0.5 + np.outer(np.arange(1, count + 1), steps)) % 1.0
        if self.dimension == 1:
            unit = ((np.arange(count) + 0.5) / count)[:, None]
        for index in self.categorical:
            unit[:, index] = np.floor(unit[:, index] * self.levels[index])
        return unit

    def landmarks(self, most: int = 128) -> NDArray[np.float64]:
        """Return enough public points to span what a kernel of the default grid detects."""
        return self.points(min(64, most) if self.dimension == 1 else most)


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """Public bounds of columns in the data's own units; categories are 0, 1, ...

    Parameters
    ----------
    lower, upper : array of float
        Of each column; infinite without bounds.
    whole : array of bool
        Which columns hold integers or categories.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    whole: NDArray[np.bool_]

    @classmethod
    def anywhere(cls, width: int) -> Box:
        """Return the box of columns without bounds."""
        reach = np.full(width, np.inf)
        return cls(-reach, reach, np.zeros(width, dtype=np.bool_))

    @property
    def bounded(self) -> bool:
        """Whether bounds were declared."""
        return bool(np.isfinite(self.lower).all())

    @property
    def width(self) -> NDArray[np.float64]:
        """Length of each side."""
        return self.upper - self.lower

    @property
    def half(self) -> NDArray[np.float64]:
        """Half of each side."""
        return self.width / 2

    @property
    def centre(self) -> NDArray[np.float64]:
        """The point in the middle."""
        return (self.lower + self.upper) / 2

    def at(self, unit: NDArray[np.float64], *, integers: bool = True) -> NDArray[np.float64]:
        """Return the points of the box at points of [0, 1]^d."""
        rows: NDArray[np.float64] = np.clip(self.lower + unit * self.width, self.lower, self.upper)
        return np.where(self.whole, np.rint(rows), rows) if integers else rows


# --- columns and schema ---------------------------------------------------------------------


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
        """Check the range and the values within it."""
        lower, upper = _finite("bounds", self.lower), _finite("bounds", self.upper)
        _check_bounds(lower, upper)
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
        values: object = self.atoms
        if not isinstance(values, Sequence) or isinstance(values, str):
            reject("atoms", "a list of values that the column may have", values)
        atoms = sorted({_finite("atoms", value) for value in values})
        if len(atoms) < len(values) or not all(map(self._may_hold, atoms)):
            reject("atoms", "different values that the column may have", values)
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
        """Check the categories."""
        values: object = self.categories
        if not isinstance(values, Sequence) or isinstance(values, str) or len(values) < 2:
            reject("categories", "a list of at least two", values)
        categories = tuple(_category(value) for value in values)
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
        """Check the description, and freeze the mapping."""
        columns: object = self.columns
        if not isinstance(columns, Mapping) or not columns:
            reject("columns", "a table that describes at least one column", columns)
        for name, column in columns.items():
            if not isinstance(name, str) or not isinstance(column, Column):
                reject(f"column {name!r}", "a name with a Numeric- or CategoricalColumn", column)
        integer_at_least("rows_per_person", self.rows_per_person, 1)
        if (who := self.id_column) is not None and (who in (*columns, "") or type(who) is not str):
            reject("id_column", "the name of a column that is not described: nobody tests it", who)
        object.__setattr__(self, "columns", MappingProxyType(dict(columns)))

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
        _check_keys(document, ("rows_per_person", "id_column", "columns"))
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
        """The set of encoded rows."""
        columns = self.columns.values()
        return Domain(tuple(len(getattr(column, "categories", ())) for column in columns))

    @property
    def box(self) -> Box:
        """The set of rows in their own units."""
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
        """The unit of privacy: a row, or a person with all their rows."""
        return privacy_unit(self.rows_per_person)

    @property
    def categorical_names(self) -> tuple[str, ...]:
        """Columns to read from a CSV file as text, so that "01" stays "01"."""
        columns = self.columns.items()
        return tuple(name for name, column in columns if isinstance(column, CategoricalColumn))

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
        from privatest.data.encoding import encode_table  # noqa: PLC0415 - it imports this module

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


def _column(name: str, entry: object) -> Column:
    """Return the column of one TOML table."""
    with _naming(name):
        if not isinstance(entry, dict):
            reject("description", "a table with a type", entry)
        keys = dict(entry)
        kind = one_of("type", keys.pop("type", None), ("numeric", "categorical"))
        needed = "bounds" if kind == "numeric" else "categories"
        optional = ("integer", "atoms") if kind == "numeric" else ("membership",)
        _check_keys(keys, (needed, *optional, "missing"))
        value = keys.pop(needed, [])
        if value == []:
            raise ParameterError(
                f"{needed} must be filled in, from what is publicly known and not from the data; "
                "or remove the column from the schema, if nobody will test it."
            )
        if kind == "numeric":
            return NumericColumn(*_pair(value), **keys)
        return CategoricalColumn(value, **keys)


@contextmanager
def _naming(column: str) -> Iterator[None]:
    """Name the column that a parameter error is about."""
    try:
        yield
    except ParameterError as error:
        raise ParameterError(f"column {column!r}: {error}") from None


def _check_keys(keys: Iterable[str], allowed: Sequence[str]) -> None:
    for key in keys:
        if key not in allowed:
            raise ParameterError(f"unknown key {key!r}; the keys are {', '.join(allowed)}.")


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


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
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


# --- bounds ---------------------------------------------------------------------------------

Bounds: TypeAlias = (
    Schema
    | Mapping[str, Sequence[float]]
    | Sequence[float]
    | Sequence[Sequence[float]]
    | NDArray[Any]
    | None
)


def numbered_names(width: int) -> tuple[str, ...]:
    """Return x1, x2, ...: names for columns without names."""
    return tuple(f"x{place}" for place in range(1, width + 1))


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


def _pair(value: object) -> tuple[Any, Any]:
    if not isinstance(value, (Sequence, np.ndarray)) or isinstance(value, str) or len(value) != 2:
        reject("bounds", _PAIR, value)
    return value[0], value[1]


def _check_bounds(lower: float, upper: float) -> None:
    """Refuse bounds that describe no range, or are next to each other.

    A quotient by a tiny distance, or its square, leaves the floats for some values and not for
    others: a warning or an error would reveal which.
    """
    if not lower < upper or not math.isfinite(upper - lower):
        raise ParameterError(f"bounds must be {_PAIR}; got {lower:.15g} and {upper:.15g}.")
    if upper - lower < _NARROWEST:
        raise ParameterError(
            f"bounds must be at least {_NARROWEST:g} apart: declare the column in other units."
        )


# --- grids on a line ------------------------------------------------------------------------

Grid = int | Sequence[float] | NDArray[Any] | Literal["exact"] | None
"""Public: None, a number of equal cells between the bounds, cut points, or "exact"."""

CheckedGrid = int | NDArray[np.float64] | Literal["exact"] | None

_EXPECTED_GRID = (
    f"None, 'exact', a number of cells from 2 to {_MOST_CELLS:,}, or at most {_MOST_CELLS - 1:,} "
    "increasing cut points"
)


def read_grid(grid: Grid) -> CheckedGrid:
    """Check a grid before any data is read."""
    if grid is None or (isinstance(grid, str) and grid == "exact"):
        return grid
    if isinstance(grid, Integral):
        if integer_at_least("grid", grid, 2) > _MOST_CELLS:
            reject("grid", _EXPECTED_GRID, grid)
        return int(grid)
    try:
        cuts = np.array(grid, dtype=np.float64)
    except (TypeError, ValueError):
        reject("grid", _EXPECTED_GRID, grid)
    usable = cuts.ndim == 1 and 1 <= cuts.size < _MOST_CELLS
    if not usable or not np.isfinite(cuts).all() or not (np.diff(cuts) > 0).all():
        reject("grid", _EXPECTED_GRID, grid)
    return cuts


def cut_points(grid: int | NDArray[np.float64], lower: float, upper: float) -> NDArray[np.float64]:
    """Return the cut points of a checked grid, between public bounds if it is a number."""
    if isinstance(grid, np.ndarray):
        return grid
    if not (np.isfinite(lower) and np.isfinite(upper) and lower < upper):
        raise ParameterError(
            "grid, as a number of cells, needs bounds. Pass bounds=(lower, upper), or an array of "
            "cut points as grid."
        )
    return equal_cuts(lower, upper, grid)


def equal_cuts(lower: float, upper: float, cells: int) -> NDArray[np.float64]:
    """Return the cut points between equal cells; fewer if bounds are so close that floats run out.

    Examples
    --------
    >>> equal_cuts(0, 2, 4).tolist()
    [0.5, 1.0, 1.5]
    """
    shares = np.arange(1, cells) / cells
    return np.unique(lower * (1 - shares) + upper * shares)  # far bounds cannot overflow


# --- template -------------------------------------------------------------------------------

_TEMPLATE_HEAD = """\
# Describe the columns by what is publicly known. Bounds or categories that are looked up in
# the data would leak it. Remove the columns that nobody will test.

rows_per_person = 1             # the most rows that one person may have
"""
_TEMPLATE_NUMERIC = """\
type = "numeric"
bounds = []                     # fill in: [lower, upper]; values outside are clipped
"""
_TEMPLATE_CATEGORICAL = """\
type = "categorical"
categories = []                 # fill in all that may occur, such as ["basic", "plus"]
membership = "private"          # "public" where everybody knows who is in which group
"""
_TEMPLATE_MISSING = 'missing = "refuse"              # or a public value to take instead\n'


def schema_template(arrow_schema: pa.Schema) -> str:
    """Return TOML to be filled in, from the names and types of columns only."""
    if len(set(arrow_schema.names)) < len(arrow_schema.names):
        raise DataError("a column name occurs more than once; rename columns to describe them.")
    parts = [_TEMPLATE_HEAD]
    for field in arrow_schema:
        key, kind = toml_key(field.name), str(field.type)
        if is_number(field.type):
            integer = "integer = true\n" if "int" in kind else ""
            parts.append(f"[columns.{key}]\n{_TEMPLATE_NUMERIC}{integer}{_TEMPLATE_MISSING}")
        elif kind in LABEL_TYPES or kind.startswith("dictionary"):
            parts.append(f"[columns.{key}]\n{_TEMPLATE_CATEGORICAL}{_TEMPLATE_MISSING}")
        else:
            parts.append(f"# {key} is left out: it holds neither numbers nor categories.\n")
    return "\n".join(parts)
