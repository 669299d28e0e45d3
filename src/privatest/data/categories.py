"""How categories are spelled, and which values of the data mean which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from privatest.core.validation import reject

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["LABEL_TYPES", "Category", "category_codes", "is_number", "spelling"]

Category = str | int | float | bool
LABEL_TYPES = ("bool", "string", "large_string", "string_view")  # of Arrow


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
