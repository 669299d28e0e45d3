"""Synthetic databases as Parquet files, with their public facts in the metadata."""

from __future__ import annotations

import base64
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from privatest.core.documents import digest, replacing
from privatest.core.errors import DataError, ParameterError, PrivatestError
from privatest.core.privacy import Budget
from privatest.data.schema import Schema
from privatest.kernels.kernels import Kernel, KernelFamily
from privatest.synthetic.data import SyntheticData
from privatest.synthetic.estimates import Facts, Weighting
from privatest.synthetic.measured import Measured

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["document", "from_document", "load", "save", "summary"]

_KEY = b"privatest"
_VERSION = 1
_DRAWS = "draws"


def save(release: SyntheticData, path: str | os.PathLike[str]) -> None:
    """Write a synthetic database; it replaces an existing file only once complete."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        with replacing(path) as draft:
            pq.write_table(_table(release), draft, write_page_checksum=True)
    except OSError as error:
        raise ParameterError(f"path cannot be written: {error.strerror}.") from None


def document(release: SyntheticData) -> dict[str, Any]:
    """Return a release as values that JSON has: its public facts, and its file as base64."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    stream = io.BytesIO()
    pq.write_table(_table(release), stream, write_page_checksum=True)
    return summary(release) | {"parquet": base64.b64encode(stream.getvalue()).decode()}


def from_document(values: Mapping[str, Any], name: str = "the document") -> SyntheticData:
    """Read what :func:`document` wrote."""
    try:
        contents = base64.b64decode(values["parquet"], validate=True)
    except (KeyError, TypeError, ValueError):
        raise DataError(f"{name} is not a release: it has no file.") from None
    return _read(io.BytesIO(contents), name)


def summary(release: SyntheticData) -> dict[str, Any]:
    """Return what is public about a release, for JSON documents and the ledger."""
    facts, kernel = release.facts, release.facts.kernel
    return {
        "rows": len(release),
        "columns": list(release.columns),
        "n": facts.n,
        "epsilon": float(facts.spent.epsilon),
        "delta": float(facts.spent.delta),
        "adjacency": "one",
        "unit": facts.unit,
        "method": facts.method,
        "bandwidth": None if kernel is None else kernel.bandwidth,
        "parameters": dict(facts.parameters),
        "simulated": facts.simulated,
    }


def _table(release: SyntheticData) -> pa.Table:
    """Return all that a release holds, sealed."""
    import pyarrow as pa  # noqa: PLC0415

    table = release.to_arrow()
    table = _with(table, _DRAWS, _lists(release.draws))
    if release.before is not None:
        table = _with(table, "signed", pa.array(release.before.weights))
        table = _with(table, f"signed_{_DRAWS}", _lists(release.before.draws))
    text = json.dumps({**_facts(release), "rows": _digest(table)}, sort_keys=True)
    sealed = json.dumps({"facts": text, "seal": digest(text)})
    return table.replace_schema_metadata({_KEY: sealed})


def load(path: str | os.PathLike[str]) -> SyntheticData:
    """Read a synthetic database; refuse a file that is damaged or something else."""
    name = Path(path).name
    if not Path(path).is_file():
        raise DataError(f"{name} cannot be read: there is no such file.")
    if Path(path).suffix != ".json":
        return _read(path, name)
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
        return from_document(values, name)
    except (OSError, RecursionError, UnicodeDecodeError, json.JSONDecodeError):
        raise DataError(f"{name} cannot be read: it is not JSON.") from None


def _read(source: str | os.PathLike[str] | io.BytesIO, name: str) -> SyntheticData:
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        table = pq.read_table(source, page_checksum_verification=True)
        box = json.loads((table.schema.metadata or {})[_KEY])
        text = box["facts"]
        facts = json.loads(text)
        intact = digest(text) == box["seal"]
    except KeyError:
        raise DataError(f"{name} is not a release: its public facts are missing.") from None
    except Exception:  # Arrow fails on a damaged file in many ways
        raise DataError(f"{name} cannot be read: it is damaged or not a Parquet file.") from None
    if isinstance(facts, dict) and facts.get("version", 0) > _VERSION:
        raise DataError(f"{name} was written by a newer version of privatest.")
    if not intact or facts.get("rows") != _digest(table):
        raise DataError(f"{name} is damaged: its rows or its public facts were changed.")
    try:
        return _release(table, facts)
    except (KeyError, TypeError, ValueError, PrivatestError):
        raise DataError(f"{name} is damaged: its public facts do not match its rows.") from None


def _facts(release: SyntheticData) -> dict[str, Any]:
    facts, kernel = release.facts, release.facts.kernel
    return {
        "version": _VERSION,
        "n": facts.n,
        "epsilon": str(facts.spent.epsilon),
        "delta": str(facts.spent.delta),
        "adjacency": "one",
        "unit": facts.unit,
        "method": facts.method,
        "kernel": None
        if kernel is None
        else {
            "family": kernel.family,
            "bandwidth": kernel.bandwidth,
            "mismatch": kernel.mismatch,
        },
        "schema": None if facts.schema is None else facts.schema.to_toml(),
        "columns": list(release.columns),
        "sigma": facts.sigma,
        "parameters": dict(facts.parameters),
        "simulated": facts.simulated,
        **({"measured": [t.to_dict() for t in release.measured]} if release.measured else {}),
    }


def _release(table: pa.Table, facts: dict[str, Any]) -> SyntheticData:
    names = [*facts["columns"]]
    columns = {name: _array(table.column(name)) for name in names}
    weight, draws, *signed = table.schema.names[len(names) :]
    kernel = facts["kernel"]
    public = Facts(
        n=int(facts["n"]),
        spent=Budget(facts["epsilon"], facts["delta"]),
        method=str(facts["method"]),
        kernel=None
        if kernel is None
        else Kernel(cast(KernelFamily, kernel["family"]), kernel["bandwidth"], kernel["mismatch"]),
        schema=None if facts["schema"] is None else Schema.from_text(facts["schema"]),
        unit=str(facts["unit"]),
        sigma=float(facts["sigma"]),
        parameters=dict(facts["parameters"]),
        simulated=bool(facts["simulated"]),
    )
    own = _weighting(table, weight, draws)
    before = _weighting(table, *signed) if signed else None
    measured = tuple(Measured.from_dict(entry) for entry in facts.get("measured", ()))
    return SyntheticData(columns, own.weights, own.draws, public, before, measured)


def _weighting(table: pa.Table, weight: str, draws: str) -> Weighting:
    matrix = np.array(table.column(draws).to_pylist(), dtype=np.float64)
    return Weighting(table.column(weight).to_numpy(), matrix.reshape(table.num_rows, -1))


def _array(column: pa.ChunkedArray) -> Any:
    values = np.array(column.to_pylist())
    array = values if values.dtype.kind in "biuf" else values.astype(object)
    array.flags.writeable = False
    return array


def _digest(table: pa.Table) -> str:
    """Return a digest of all values, independent of chunks and encoding in the file."""
    columns = ((name, json.dumps(table.column(name).to_pylist())) for name in table.schema.names)
    return digest("".join(name + values for name, values in columns))


def _lists(draws: NDArray[np.float64]) -> pa.FixedSizeListArray:
    import pyarrow as pa  # noqa: PLC0415

    return pa.FixedSizeListArray.from_arrays(pa.array(draws.ravel()), draws.shape[1])


def _with(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    """Append a column, with underscores after its name if the rows have such a column."""
    while name in table.schema.names:
        name += "_"
    return table.append_column(name, values)
