"""The command, and the Python code, that ask the same again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from privatest.data.schema import NumericColumn, Schema
from privatest.reports.subject import Subject

__all__ = ["SCHEMA_FILE", "command", "program", "schema_file"]

SCHEMA_FILE = "schema.toml"
_HEAD = {"question", "dataset", "where"}
_USUAL = {"delta": "0", "alpha": 0.05}
_TWO = 2
_NAMES = {"columns", "x", "y", "given"}


def schema_file(subject: Subject) -> str:
    """Return the description of the columns where the command needs a file; "" if it does not."""
    schema = subject.schema
    return "" if schema is None or _is_bounds(schema) else schema.to_toml()


def command(subject: Subject) -> str:
    """Return the command line of a request; "" where a function was called."""
    request, document = subject.request, subject.document
    if "shares" in document:
        return _joined(["privatest", "compare", *document["shares"]])
    if not request or "dataset" in request:
        return ""
    words = ["privatest", str(request["question"]), *map(str, document.get("files", ()))]
    for name, value in request.items():
        if name not in _HEAD and _USUAL.get(name) != value:
            words += _option(name, value)
    words += _described(subject.schema)
    if document.get("file"):
        words += ["--output", str(document["file"])]
    lines = document.get("ledger")
    if lines == []:
        words.append("--no-ledger")
    return _joined(words)


def _option(name: str, value: Any) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    if name == "each_column":
        return [flag, "--adjust", str(value)]
    if name == "groups":
        first, more = [str(each) for each in value[:_TWO]], [str(each) for each in value[_TWO:]]
        return [flag, *first, *(["--more-groups", _named(more)] if more else [])]
    if name in _NAMES:
        return [flag, _named(value)]
    if isinstance(value, Mapping):
        return [flag, ",".join(f"{key}={part}" for key, part in value.items())]
    if isinstance(value, (list, tuple)):
        return [flag, ",".join(map(str, value))]
    return [flag, str(value)]


def _named(names: Any) -> str:
    """Write names with commas between, as the command line reads them."""
    quoted = ['"{}"'.format(name.replace('"', '""')) if "," in name else name for name in names]
    return ",".join(quoted)


def _described(schema: Schema | None) -> list[str]:
    if schema is None:
        return []
    if not _is_bounds(schema):
        return ["--schema", SCHEMA_FILE]
    words = []
    for name, (low, high) in _pairs(schema).items():
        words += ["--bounds", f"{name}={low!r}:{high!r}"]
    rows = schema.rows_per_person
    return words + (["--rows-per-person", str(rows)] if rows > 1 else [])


def _is_bounds(schema: Schema) -> bool:
    """Whether ``--bounds`` says all that the schema does."""
    pairs = _pairs(schema)
    if len(pairs) < len(schema.columns):
        return False
    return schema == Schema.from_bounds(pairs, rows_per_person=schema.rows_per_person)


def _pairs(schema: Schema) -> dict[str, tuple[float, float]]:
    """Return the bounds of the numeric columns."""
    return {
        name: (column.lower, column.upper)
        for name, column in schema.columns.items()
        if isinstance(column, NumericColumn)
    }


def _joined(words: list[str]) -> str:
    """Write a command in lines that fit on paper."""
    lines, current = [], ""
    for word in map(shlex.quote, words):
        starts = word.startswith("--") and len(current) > 50
        if starts:
            lines.append(current)
            current = f"  {word}"
        else:
            current = f"{current} {word}".lstrip(" ") if not lines else f"{current} {word}"
    return " \\\n".join([*lines, current])


_CURATED = """import os

import privatest as pt

client = pt.connect(os.environ["PRIVATEST_URL"], os.environ["PRIVATEST_TOKEN"])
answer = client.run(
    {request}
)
print(answer)
"""
_PROGRAM = """from privatest import Schema
from privatest.data.sources import read_table
from privatest.requests.prepare import prepare
from privatest.requests.request import Request

request = Request.from_dict(
    {request}
)
schema = {schema}
prepared = prepare(request, schema, samples={samples})
tables = [read_table(file, prepared.names, text=prepared.text) for file in {files}]
print(prepared.run(*tables))  # nothing is charged: count what it costs
"""
_SHARES = """import privatest as pt

shares = [pt.Share.load(file) for file in {files}]
print(pt.compare(*shares, alpha={alpha!r}))
"""


def program(subject: Subject) -> str:
    """Return the Python code that asks the same."""
    request, document = dict(subject.request), subject.document
    if "shares" in document:
        return _SHARES.format(files=document["shares"], alpha=document.get("alpha", 0.05))
    if not request:
        return ""
    lines = [f"        {name!r}: {value!r}," for name, value in request.items()]
    written = "\n".join(["{", *lines, "    }"])
    if "dataset" in request:
        return _CURATED.format(request=written)
    files = [str(file) for file in document.get("files", ())]
    schema = subject.schema
    described = "None"
    if schema is not None:
        described = f"Schema.from_toml({SCHEMA_FILE!r})"
        if _is_bounds(schema):
            rows = schema.rows_per_person
            more = f", rows_per_person={rows}" if rows > 1 else ""
            described = f"Schema.from_bounds({_pairs(schema)}{more})"
    return _PROGRAM.format(request=written, schema=described, samples=len(files), files=files)
