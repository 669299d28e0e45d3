"""A schema to be filled in, from the names and types of columns only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privatest.core.errors import DataError
from privatest.data.categories import LABEL_TYPES, is_number
from privatest.data.schema import toml_key

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["schema_template"]

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
