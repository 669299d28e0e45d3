"""A value planted in the data must not show up: in no result, message, error, pickle or file."""

from __future__ import annotations

import pickle
import struct
from typing import TYPE_CHECKING, Any

from privatest.audit.cases import Case
from privatest.audit.findings import Finding
from privatest.audit.neighbours import Pair, structured_pairs
from privatest.audit.running import Seen, attempt, document, watched
from privatest.core.noise import SecureNoise
from privatest.data.schema import CategoricalColumn

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CANARY", "attack_outputs", "everything"]

CANARY = 0.7346291058213646
_DIGITS = "734629105821"  # noise never spells as many of them
_WORD = "canary7346291"


def attack_outputs(case: Case, seed: int) -> Finding:
    """Plant a number, then a word that no column has, and search all that comes out."""
    pair = next(structured_pairs(case.schema, case.rows, seed))
    places: list[str] = []
    for table, words in ((_planted(case, pair), (_DIGITS,)), (_broken(case, pair), (_WORD,))):
        said: list[str] = []
        try:
            seen = attempt(case, table, SecureNoise(), 1)
        except Exception as error:
            seen = Seen(failed=f"{type(error).__name__}: {error}")
        places += [name for name, text in everything(seen, said).items() if _found(text, words)]
    told = f"a planted value is in: {', '.join(places)}" if places else "no planted value found"
    return Finding("outputs", not places, told, {"places": places})


def _planted(case: Case, pair: Pair) -> pa.Table:
    """Return rows of which every number within the unit interval is the canary."""
    import pyarrow as pa  # noqa: PLC0415

    table = pair.tables(case.schema)[0]
    for name in ("x", "y"):
        values = [CANARY] * (table.num_rows - 2) + [0.0, 1.0]
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return table


def _broken(case: Case, pair: Pair) -> pa.Table:
    """Return rows with a word where there is none: whatever is said of them must not repeat it."""
    import pyarrow as pa  # noqa: PLC0415

    table = pair.tables(case.schema)[0]
    for name in case.columns:
        column, values = case.schema.columns[name], table.column(name).to_pylist()
        if name == "arm":  # public
            continue
        categorical = isinstance(column, CategoricalColumn)
        values = [_WORD, *values[1:]] if categorical else [_WORD, *map(str, values[1:])]
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return table


def everything(seen: Seen, said: list[str]) -> dict[str, str | bytes]:
    """Return all that a run says, by where it says it."""
    result = seen.result
    found: dict[str, str | bytes] = {"messages": "\n".join(seen.said), "error": seen.failed}
    if result is None:
        return found
    found |= {"result": document(result), "repr": repr(result), "text": str(result)}
    with watched(said):
        found["pickle"] = pickle.dumps(result)
        for name in ("to_json", "_repr_html_", "facts"):
            form: Any = getattr(result, name, None)
            if callable(form):
                found[name] = repr(form())
        for name in ("verdict", "guarantee"):
            if hasattr(result, name):
                found[name] = str(getattr(result, name))
    return found


def _found(text: str | bytes, words: tuple[str, ...]) -> bool:
    if isinstance(text, bytes):
        binary = struct.pack("<d", CANARY), struct.pack(">d", CANARY)
        return any(form in text for form in (*binary, *(word.encode() for word in words)))
    return any(word in text for word in words)
