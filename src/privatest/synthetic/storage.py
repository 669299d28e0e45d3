"""Synthetic databases as Parquet files, with their public facts in the metadata."""

from __future__ import annotations

import base64
import hashlib
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
from privatest.numerics.kernels import Kernel, KernelFamily
from privatest.synthetic.answers import Facts, Floats, Weighting
from privatest.synthetic.data import SyntheticData
from privatest.synthetic.embedding import Coefficients
from privatest.synthetic.tables import Measurement

if TYPE_CHECKING:
    import pyarrow as pa

_KEY = b"privatest"
_VERSION = 3  # since there are bins that were bought; files without any are of version 2
_DRAWS = "draws"
_FITTED = "nonnegative"
_FORMATS = (".csv", ".parquet", ".arrow", ".feather")
_PLAIN = {"double": "<f8", "int64": "<i8"}  # Arrow's types of numbers, as NumPy has them


def save(release: SyntheticData, path: str | os.PathLike[str]) -> None:
    """Write a synthetic database; it replaces an existing file only once complete."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        with replacing(path) as draft:
            pq.write_table(_table(release), draft, write_page_checksum=True)
    except OSError as error:
        raise ParameterError(f"path cannot be written: {error.strerror}.") from None


def write_rows(rows: pa.Table, path: str | os.PathLike[str]) -> None:
    """Write a table in the format of the path's ending, whole or not at all."""
    ending = Path(path).suffix
    if ending not in _FORMATS:
        raise ParameterError(f"path must end in {', '.join(_FORMATS)}.")
    try:
        with replacing(path) as draft:
            _write_format(rows, draft, ending)
    except OSError as error:
        raise ParameterError(f"path cannot be written: {error.strerror}.") from None


def _write_format(rows: pa.Table, draft: Path, ending: str) -> None:
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
    if release.draws.shape[1]:  # Parquet has no lists without values
        table = _with(table, _DRAWS, _lists(release.draws))
    if release.before is not None:
        table = _with(table, "signed", pa.array(release.before.weights))
        table = _with(table, f"signed_{_DRAWS}", _lists(release.before.draws))
    if release.coefficients is not None and release.facts.kernel is not None:
        fitted = release.nonnegative()  # looked for once: every question needs them
        if fitted is not release:
            table = _with(table, _FITTED, pa.array(fitted.weights))
            table = _with(table, f"{_FITTED}_{_DRAWS}", _lists(fitted.draws))
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
        # not read_table, which imports pandas
        with pq.ParquetFile(source, page_checksum_verification=True) as file:
            table = file.read(use_threads=False)
        box = json.loads((table.schema.metadata or {})[_KEY])
        text = box["facts"]
        facts = json.loads(text)
        intact = digest(text) == box["seal"]
    except KeyError:
        raise DataError(f"{name} is not a release: its public facts are missing.") from None
    except Exception:  # Arrow fails on a damaged file in many ways
        raise DataError(
            f"{name} cannot be read: it is damaged, or not a Parquet file as `release` writes it."
        ) from None
    if isinstance(facts, dict) and facts.get("version", 0) > _VERSION:
        raise DataError(f"{name} was written by a newer version of privatest.")
    digest_of = _digest if facts.get("version", 0) > 1 else _first_digest
    if not intact or facts.get("rows") != digest_of(table):
        raise DataError(f"{name} is damaged: its rows or its public facts were changed.")
    try:
        return _release(table, facts)
    except (KeyError, TypeError, ValueError, PrivatestError):
        raise DataError(f"{name} is damaged: its public facts do not match its rows.") from None


def _facts(release: SyntheticData) -> dict[str, Any]:
    facts, kernel = release.facts, release.facts.kernel
    return {
        "version": _VERSION if facts.starts else _VERSION - 1,
        "n": facts.n,
        "epsilon": str(facts.spent.epsilon),
        "delta": str(facts.spent.delta),
        "adjacency": "one",
        "unit": facts.unit,
        "method": facts.method,
        "kernel": None
        if kernel is None
        else {"family": kernel.family, "bandwidth": kernel.bandwidth, "mismatch": kernel.mismatch},
        "schema": None if facts.schema is None else facts.schema.to_toml(),
        "columns": list(release.columns),
        "sigma": facts.sigma,
        "parameters": dict(facts.parameters),
        "simulated": facts.simulated,
        "coefficients": _coefficients(release.coefficients),
        "draws": release.draws.shape[1] > 0,
        "signed": release.before is not None,
        **({"starts": dict(facts.starts)} if facts.starts else {}),
        **({"measured": [t.to_dict() for t in release.measured]} if release.measured else {}),
    }


def _release(table: pa.Table, facts: dict[str, Any]) -> SyntheticData:
    names = [*facts["columns"]]
    columns = {name: _array(table.column(name)) for name in names}
    weight, *more = table.schema.names[len(names) :]
    draws = more.pop(0) if facts.get("draws", True) else None
    signed, fitted = (more[:2], more[2:]) if facts.get("signed", True) else ([], more)
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
        starts={name: tuple(map(float, own)) for name, own in facts.get("starts", {}).items()},
    )
    weights = _weighting(table, weight, draws)
    before = _weighting(table, *signed) if signed else None
    coefficients = _measured(facts.get("coefficients"))
    tables = tuple(map(Measurement.from_dict, facts.get("measured", ())))
    parts = (public, before, coefficients, tables)
    release = SyntheticData(columns, weights.weights, weights.draws, *parts)
    if fitted:
        release.keep_nonnegative(_weighting(table, *fitted))
    return release


def _coefficients(measured: Coefficients | None) -> dict[str, Any] | None:
    if measured is None:
        return None
    arrays = {name: getattr(measured, name) for name in ("places", "amplitudes", "values")}
    coded = {name: base64.b64encode(array.tobytes()).decode() for name, array in arrays.items()}
    width = measured.places.shape[1]
    return {"kind": measured.kind, "width": width, "sigma": measured.sigma, **coded}


def _measured(coded: Mapping[str, Any] | None) -> Coefficients | None:
    if coded is None:
        return None
    places, amplitudes, values = (
        np.frombuffer(base64.b64decode(coded[name], validate=True))
        for name in ("places", "amplitudes", "values")
    )
    places = places.reshape(-1, int(coded["width"]))
    return Coefficients(coded["kind"], places, amplitudes, values, float(coded["sigma"]))


def _weighting(table: pa.Table, weight: str, draws: str | None) -> Weighting:
    matrix = np.empty(0) if draws is None else _numbers(table.column(draws))
    return Weighting(
        _numbers(table.column(weight)),
        matrix.reshape(table.num_rows, matrix.size // table.num_rows),
    )


def _array(column: pa.ChunkedArray) -> Any:
    values = _numbers(column) if str(column.type) in _PLAIN else np.array(column.to_pylist())
    array = values if values.dtype.kind in "biuf" else values.astype(object)
    array.flags.writeable = False
    return array


def _numbers(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return the numbers of a column, or of its lists; Arrow's own way imports pandas."""
    parts = []
    for chunk in column.chunks:
        values = chunk.flatten() if str(chunk.type) not in _PLAIN else chunk
        if values.null_count or str(values.type) not in _PLAIN:
            raise ValueError("there must be a number in every row.")
        kind = np.dtype(_PLAIN[str(values.type)])
        buffer = values.buffers()[1]
        if len(values):
            start = values.offset * kind.itemsize
            parts.append(np.frombuffer(buffer, kind, count=len(values), offset=start))
    return np.concatenate(parts) if parts else np.empty(0)


def _digest(table: pa.Table) -> str:
    """Return a digest of all values, independent of chunks and encoding in the file."""
    state = hashlib.sha256()
    for name in table.schema.names:
        column = table.column(name)
        kind = str(column.type).partition("<")[0]  # Parquet renames what is in a list
        state.update(json.dumps([name, kind, len(column)]).encode())
        if kind in _PLAIN or kind == "fixed_size_list":
            state.update(np.ascontiguousarray(_numbers(column)).tobytes())
        else:
            state.update(json.dumps(column.to_pylist()).encode())
    return state.hexdigest()


def _first_digest(table: pa.Table) -> str:
    """Return the digest that files of version 1 have."""
    columns = ((name, json.dumps(table.column(name).to_pylist())) for name in table.schema.names)
    return digest("".join(name + values for name, values in columns))


def _lists(draws: Floats) -> pa.FixedSizeListArray:
    import pyarrow as pa  # noqa: PLC0415

    return pa.FixedSizeListArray.from_arrays(pa.array(draws.ravel()), draws.shape[1])


def _with(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    """Append a column, with underscores after its name if the rows have such a column."""
    while name in table.schema.names:
        name += "_"
    return table.append_column(name, values)
