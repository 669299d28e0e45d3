"""Write docs/reference/json.md, and the JSON Schemas of both distributions, from json_documents.

Run ``python -m tools.json_reference``. A test fails when a committed file is out of date.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tools.json_documents import DOCUMENTS, PAPERS, PAPERS_PARTS, PARTS, schema

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "src" / "privatest" / "cli" / "output.schema.json"
PAPERS_SCHEMA = ROOT / "papers" / "src" / "privatest_papers" / "output.schema.json"
PAGE = ROOT / "docs" / "reference" / "json.md"

INTRODUCTION = """\
# JSON documents

<!-- Written by `python -m tools.json_reference`. Do not edit: change tools/json_documents.py. -->

With `--json` a command prints one JSON document on standard output, with everything that it would
tell people; errors and notes go to standard error. `format` is the version: it grows when a key
goes or changes its meaning. Keys may be added without, so ignore those that you do not know.
Budgets are exact decimals, as text, where they are added up; a result's own epsilon and delta are
numbers.

The same as a [JSON Schema](https://json-schema.org): the file `cli/output.schema.json` of the
package, and `output.schema.json` of privatest-papers for `reproduce`.
`ledger export` writes lines of entries instead, one JSON object each.
"""


def render() -> str:
    """Return the whole page."""
    sections = [_section("##", name, entry) for name, entry in (DOCUMENTS | PAPERS).items()]
    inner = [_section("###", name, entry) for name, entry in (PARTS | PAPERS_PARTS).items()]
    return "\n".join([INTRODUCTION, *sections, "## Parts of documents\n", *inner])


def render_schema() -> str:
    """Return the schema's file."""
    return json.dumps(schema(), indent=1) + "\n"


def render_papers_schema() -> str:
    """Return the schema's file of privatest-papers."""
    return json.dumps(schema(PAPERS, PAPERS_PARTS), indent=1) + "\n"


def _section(level: str, name: str, entry: Mapping[str, Any]) -> str:
    head = f"{level} {name}\n\n{entry['description']}\n\n| Key | Type | Meaning |\n|---|---|---|"
    return "\n".join([head, *_rows(entry)]) + "\n"


def _rows(entry: Mapping[str, Any]) -> Iterator[str]:
    for name, value in entry["properties"].items():
        if name == "format":
            continue  # the introduction has it
        optional = "" if name in entry["required"] else ", optional"
        yield f"| `{name}` | {_type(value)}{optional} | {value.get('description', '')} |"


def _type(value: Mapping[str, Any]) -> str:
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{name})"
    if "const" in value:
        return f"`{json.dumps(value['const'])}`"
    if "enum" in value:
        return " or ".join(f"`{choice}`" for choice in value["enum"])
    if value.get("type") == "array":
        return f"list of {_type(value['items'])}"
    kind = value.get("type", "anything")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    SCHEMA.write_text(render_schema(), encoding="utf-8")
    PAPERS_SCHEMA.write_text(render_papers_schema(), encoding="utf-8")
