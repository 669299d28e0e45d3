"""Entries of a ledger, in words: what was asked, and what came out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from privatest.cli.output import Page, print_result
from privatest.core.privacy import Budget
from privatest.core.results import Decision

if TYPE_CHECKING:
    from privatest.ledger import Answered

__all__ = ["details", "print_answer", "words_of"]

_COSTS = ("epsilon", "delta")
_FIRST = ("method", "columns", "column", "x", "y", "before", "after", "group", "groups", "where")
_ID = 8  # digits that are shown
_LONGEST = 60  # characters of a value; the JSON document has all of it


def details(body: Mapping[str, Any]) -> str:
    """Return what a reader looks for in an entry: who, what, at which price, how it ended."""
    parts = []
    if body.get("opens") or body.get("closes"):
        parts.append(f"id {_plain(body.get('opens') or body['closes'])[:_ID]}")
    if body.get("analyst"):
        parts.append(f"analyst {_plain(body['analyst'])}")
    costs = {name: _amount(body.get(name, 0)) for name in _COSTS}
    parts += [f"{name} {amount}" for name, amount in costs.items() if amount != "0"]
    if body.get("kind") == "reserved":
        parts.append(words_of(body.get("asked")))
    if body.get("reason"):
        parts.append(_plain(body["reason"]))
    return ", ".join(parts)


def words_of(asked: object) -> str:
    """Return a request in one line: its question first, then everything else that was said."""
    if not isinstance(asked, Mapping):
        return "what was asked was not recorded"
    # the record sorts names; a reader wants to know first which test, of what
    names = sorted(asked, key=lambda n: (_FIRST.index(n) if n in _FIRST else len(_FIRST), n))
    rest = [f"{_plain(n)} {_value(asked[n])}" for n in names if n not in ("question", *_COSTS)]
    return "; ".join([_plain(asked.get("question", "")), *rest]).lstrip("; ")


def print_answer(found: Answered) -> None:
    """Print a recorded answer as its command did."""
    from privatest.questions import result_from_dict  # noqa: PLC0415

    page, released = Page(), found.released
    document = released if isinstance(released, Mapping) else {"": released}
    result = result_from_dict(document, Budget(found.epsilon, found.delta))
    if isinstance(result, Decision):
        print_result(result, compared=words_of(found.asked), label="asked")
    else:
        page.line(f"  {'asked':<10} {words_of(found.asked)}")
        for line in str(result).splitlines() if result is not None else _lines(document):
            page.line(line)
    page.line(
        f"From the record of {found.dataset}, {found.time.replace('T', ' ')[:19]} UTC, "
        f"id {found.id[:_ID]}. This cost nothing more."
    )


def _lines(released: Mapping[str, Any]) -> Iterator[str]:
    """Yield the public facts of a file that was released."""
    for name, value in released.items():
        yield f"  {_plain(name):<10} {_value(value)}"


def _value(value: object) -> str:
    """Write a value on one line, and shorten it: a request may hold a whole table."""
    if isinstance(value, Mapping):
        text = ", ".join(f"{_plain(name)} {_value(item)}" for name, item in value.items())
    elif isinstance(value, (list, tuple)):
        text = ", ".join(_value(item) for item in value)
    else:
        text = f"{value:g}" if isinstance(value, float) else _plain(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _plain(value: object) -> str:
    """Write a name without what a terminal would take for a command."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in str(value))


def _amount(value: object) -> str:
    """Write an exact decimal as people do: 0.5, 1e-06."""
    try:
        return f"{float(Decimal(str(value))):g}"
    except (InvalidOperation, OverflowError, ValueError):
        return _plain(value)
