"""Tables that the benchmarks print."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows; numbers to three digits, None as a dash."""
    table = Table(*columns, title=title)
    for row in rows:
        table.add_row(*(_text(value) for value in row))
    Console().print(table)


def _text(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
