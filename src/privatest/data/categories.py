"""Which values mean which category: one grammar for columns, and for groups that a request names.

Values with one spelling mean the same: 1, 1.0 and the text "1"; true and the text "TRUE". Text that
is spelled in another way may still be a number:

- a category that a schema declares as a number may be written in every way that numbers are:
  "1.0", "01", "1e0" and " 1" are 1. A category that is text is matched literally;
- a label of a request has no type. If it is a plain number, so may values be: "1.0" is "1", but
  "01" is a code and not "1".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privatest.core.validation import reject

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "LABEL_TYPES",
    "MISSING",
    "MISSING_TEXT",
    "UNKNOWN",
    "Categories",
    "Category",
    "category_codes",
    "is_number",
    "label_spelling",
    "spelling",
]

Category = str | int | float | bool
LABEL_TYPES = ("bool", "string", "large_string", "string_view")  # of Arrow

# How missing values are spelled in text; a declared category of the same spelling wins.
MISSING_TEXT = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")
UNKNOWN, MISSING = -1, -2

_NUMERAL = re.compile(r"[+-]?(\d{1,30}\.?\d{0,30}|\.\d{1,30})([eE][+-]?\d{1,3})?", re.ASCII)
_PLAIN_NUMERAL = re.compile(r"-?(0|[1-9]\d{0,29})(\.\d{1,30})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Categories:
    """Codes of categories, and the values that mean them.

    Attributes
    ----------
    codes : mapping of str to int
        The code of each by its spelling.
    numbers : frozenset of int
        Codes of categories that text may spell in several ways.
    numeral : pattern
        Those ways.
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
    """Spell the number that a text is, or return "", which is none."""
    if not numeral.fullmatch(text):
        return ""
    return spelling(float(text) if set(text) & set(".eE") else int(text))


def is_number(kind: pa.DataType) -> bool:
    """Whether an Arrow type holds numbers."""
    import pyarrow.types as kinds  # noqa: PLC0415

    return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind))


def spelling(value: Any) -> str:
    """Spell a category or a value so that what means the same is the same text.

    1, 1.0 and "1" are "1"; True, "True" and "TRUE" are "true"; "01" stays itself.
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
