"""What a curator remembers of a data set after validating it: public facts, and which data it was.

The facts are the number of rows and, for columns whose membership is public, how many rows are
in which categories. With them a request can be rehearsed on made-up rows of the same sizes.

Which contents a file has is told by a fingerprint that only its custodian can check. A plain hash
in the ledger would let anybody who knows all rows but one try out the last one; so the fingerprint
has a secret key, which stays in the state file.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.core.documents import write_text
from privatest.core.errors import LedgerError, ParameterError
from privatest.curator.admission import categories_of, schema_digest
from privatest.data.schema import CategoricalColumn, Schema
from privatest.questions import rehearsal

if TYPE_CHECKING:
    import pyarrow as pa

    from privatest.curator.config import DatasetConfig
    from privatest.questions.request import Filter

__all__ = [
    "Registration",
    "fingerprint",
    "fingerprinting",
    "load_registrations",
    "made_up_rows",
    "register",
    "rows_of",
    "save_registration",
    "stamp",
]


@dataclass(frozen=True, slots=True)
class Registration:
    """A data set that was found to fit its schema.

    Attributes
    ----------
    schema : str
        Fingerprint of the schema.
    stamp : tuple of int
        Size and time of the file, to notice without reading it that it is another one by now.
    key, contents : str
        A secret key, the same for all data sets of a curator, and with it the fingerprint of
        the file's contents.
    rows : int
        The number of rows.
    public : tuple of str
        Columns whose membership is public.
    cells : tuple of tuple of int
        Codes of those columns, and how many rows have them.
    """

    schema: str
    stamp: tuple[int, int]
    key: str
    contents: str
    rows: int
    public: tuple[str, ...]
    cells: tuple[tuple[int, ...], ...]

    def is_current(self, dataset: DatasetConfig) -> bool:
        """Return whether neither the file nor the schema has changed since."""
        return self.schema == schema_digest(dataset.schema) and self.stamp == stamp(dataset.source)


def stamp(source: Path) -> tuple[int, int]:
    """Return size and time of a file, without reading it; zeros if it is gone."""
    try:
        found = source.stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


def fingerprint(source: Path, key: str) -> str:
    """Return the keyed fingerprint of a file's bytes, or "" if it cannot be read."""
    try:
        with source.open("rb") as stream:
            found = hashlib.file_digest(stream, lambda: hmac.new(key.encode(), digestmod="sha256"))
    except OSError:
        return ""
    return found.hexdigest()


@contextmanager
def fingerprinting(source: Path, key: str) -> Iterator[Callable[[], str]]:
    """Compute the fingerprint beside other work; hashing releases the GIL."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(fingerprint, source, key).result


def register(dataset: DatasetConfig, key: str) -> Registration:
    """Validate all rows against the schema; DataError names the column and the rule.

    Parameters
    ----------
    dataset : DatasetConfig
        What to validate.
    key : str
        The secret key of the curator's fingerprints.
    """
    from privatest.data.sources import read_table  # noqa: PLC0415

    schema, before = dataset.schema, stamp(dataset.source)
    with fingerprinting(dataset.source, key) as contents:
        table = read_table(dataset.source, list(schema.columns), text=schema.categorical_names)
        found = contents()
    public, cells = _public_facts(table, schema)
    if stamp(dataset.source) != before:
        raise ParameterError(f"the file of {dataset.name} changed while it was read; try again.")
    digest = schema_digest(schema)
    return Registration(digest, before, key, found, table.num_rows, public, cells)


def _public_facts(
    table: pa.Table, schema: Schema
) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
    """Validate the rows; return the public columns, and how many rows have which codes there."""
    for name in schema.columns:  # one at a time: the codes of all would be a second copy
        schema.select([name]).encode(table.select([name]))
    public = tuple(name for name, column in schema.columns.items() if _is_public(column))
    cells: tuple[tuple[int, ...], ...] = ((table.num_rows,),)
    if public:
        codes = schema.select(public).encode(table.select(public)).astype(np.int64)
        found, counts = np.unique(codes, axis=0, return_counts=True)
        cells = tuple(tuple(map(int, (*c, n))) for c, n in zip(found, counts, strict=True))
    return public, cells


def rows_of(registration: Registration, filters: Mapping[str, Filter]) -> int:
    """Return how many rows pass a filter on public columns: a public number."""
    chosen = [(registration.public.index(name), each.codes) for name, each in filters.items()]
    return sum(
        cell[-1] for cell in registration.cells if all(cell[i] in codes for i, codes in chosen)
    )


def made_up_rows(registration: Registration, schema: Schema) -> pa.Table:
    """Return rows that nobody has: uniform over the schema's domain, with the public sizes."""
    *codes, counts = np.array(registration.cells).T
    labels = {
        name: np.array(categories_of(schema, name))[np.repeat(column, counts)]
        for name, column in zip(registration.public, codes, strict=True)
        if name in schema.columns
    }
    return rehearsal.made_up_rows(schema.columns, schema, registration.rows, labels)


def load_registrations(path: Path) -> dict[str, Registration]:
    """Read what was registered; nothing where there is no file.

    A file that cannot be read is an error: taken for "nothing was registered", a lost ledger
    would be replaced by a new one with the whole budget.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {name: _read(values) for name, values in found.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise LedgerError(
            f"{path.name} cannot be read. It says what was registered: put it back. If there is "
            "no copy and the ledger is in place, remove it and register every data set again."
        ) from None


def save_registration(path: Path, name: str, registration: Registration) -> None:
    """Add one to the file, for its owner alone."""
    found = load_registrations(path) | {name: registration}
    text = json.dumps({name: asdict(values) for name, values in found.items()}, indent=1)
    try:
        write_text(path, text, private=True)
    except OSError as error:
        raise ParameterError(f"state cannot be written: {error.strerror}.") from None


def _is_public(column: object) -> bool:
    return isinstance(column, CategoricalColumn) and column.membership == "public"


def _read(values: Mapping[str, Any]) -> Registration:
    size, time = map(int, values["stamp"])
    return Registration(
        str(values["schema"]),
        (size, time),
        str(values["key"]),
        str(values["contents"]),
        int(values["rows"]),
        tuple(map(str, values["public"])),
        tuple(tuple(map(int, cell)) for cell in values["cells"]),
    )
