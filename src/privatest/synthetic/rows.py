"""Released rows for other programs: drawn without weights, as tables, and as files."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.documents import replacing
from privatest.core.errors import ParameterError
from privatest.core.results import html_table
from privatest.core.validation import printable

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FORMATS", "as_html", "drawn", "table", "transformed", "write"]

_SHOWN_ROWS = 5  # in a notebook
FORMATS = (".csv", ".parquet", ".arrow", ".feather")


def drawn(
    columns: Mapping[str, NDArray[Any]],
    shares: NDArray[np.float64],
    n: int,
    rng: np.random.Generator,
) -> pa.Table:
    """Draw rows by non-negative weights: systematic sampling, in random order."""
    ticks = (np.arange(n) + rng.random()) / n
    chosen = np.searchsorted(np.cumsum(shares) / shares.sum(), ticks, side="right")
    chosen = rng.permutation(np.minimum(chosen, len(shares) - 1))
    return table({name: values[chosen] for name, values in columns.items()})


def transformed(
    columns: Mapping[str, NDArray[Any]], function: Callable[[Mapping[str, NDArray[Any]]], Any]
) -> dict[str, NDArray[Any]]:
    """Apply a function to every row; it returns a mapping of names to arrays, or one array."""
    count, result = len(next(iter(columns.values()))), function(columns)
    if not isinstance(result, Mapping):
        array = np.asarray(result)
        array = array.reshape(len(array), -1) if array.ndim else array.reshape(1, 1)
        result = {f"x{index + 1}": array[:, index] for index in range(array.shape[1])}
    found = {str(name): np.asarray(values) for name, values in result.items()}
    if any(values.shape != (count,) for values in found.values()) or not found:
        raise ParameterError("function must return a value for each synthetic row.")
    return found


def as_html(columns: Mapping[str, NDArray[Any]], head: str, guarantee: str) -> str:
    """Return the first rows as a table."""
    count = len(next(iter(columns.values())))
    shown = [
        (str(place + 1), *(_shown(values[place]) for values in columns.values()))
        for place in range(min(count, _SHOWN_ROWS))
    ]
    found = html_table([("", *map(printable, columns)), *shown], head)
    return f"{found}<p>{html.escape(guarantee)}</p>"


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else printable(str(value))


def table(columns: Mapping[str, NDArray[Any]]) -> pa.Table:
    """Return columns as an Arrow table."""
    import pyarrow as pa  # noqa: PLC0415

    return pa.table({name: pa.array(values.tolist()) for name, values in columns.items()})


def write(rows: pa.Table, path: str | os.PathLike[str]) -> None:
    """Write a table in the format of the path's ending, whole or not at all."""
    ending = Path(path).suffix
    if ending not in FORMATS:
        raise ParameterError(f"path must end in {', '.join(FORMATS)}.")
    try:
        with replacing(path) as draft:
            _written(rows, draft, ending)
    except OSError as error:
        raise ParameterError(f"path cannot be written: {error.strerror}.") from None


def _written(rows: pa.Table, draft: Path, ending: str) -> None:
    if ending == ".csv":
        from pyarrow import csv  # noqa: PLC0415

        csv.write_csv(rows, draft)
    elif ending == ".parquet":
        import pyarrow.parquet as pq  # noqa: PLC0415

        pq.write_table(rows, draft)
    else:
        import pyarrow as pa  # noqa: PLC0415

        with pa.OSFile(str(draft), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)
