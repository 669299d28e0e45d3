"""Two samples of ten columns, written as Parquet a row group at a time, as Arrow does by default.

Random doubles are the quickest to read: there is nothing to decompress. So this is the strictest
measure of what a test costs beside reading.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

COLUMNS = tuple(f"c{place}" for place in range(10))
GROUP_ROWS = 1 << 20
ROW_BYTES = 8 * len(COLUMNS)  # random doubles do not get smaller


def sample_path(folder: Path, name: str, rows: int) -> Path:
    return folder / f"{name}-{rows}.parquet"


def make(folder: Path, sizes: list[int]) -> None:
    """Write samples of these sizes, where they are not there yet."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    folder.mkdir(parents=True, exist_ok=True)
    wanted = {(name, rows): sample_path(folder, name, rows) for name in "xy" for rows in sizes}
    missing = {
        key: path
        for key, path in wanted.items()
        if not path.exists() or pq.read_metadata(path).num_rows != key[1]
    }
    needed = int(1.05 * ROW_BYTES * sum(rows for _, rows in missing))
    free = shutil.disk_usage(folder).free
    print(f"{needed / 1e9:.1f} GB of disk are needed in {folder}, and {free / 1e9:.1f} are free.")
    if needed > free:
        raise SystemExit("Pass --folder with more room, or a smaller --rows.")
    for (name, rows), path in missing.items():
        _write(path, rows, seed=rows + (name == "y"), shift=0.002 * (name == "y"))


def _write(path: Path, rows: int, *, seed: int, shift: float) -> None:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    rng = np.random.default_rng(seed)
    schema = pa.schema([(name, pa.float64()) for name in COLUMNS])
    part = path.with_suffix(".part")  # a script that is stopped leaves no half file
    with pq.ParquetWriter(part, schema) as writer:
        for start in range(0, rows, GROUP_ROWS):
            count = min(GROUP_ROWS, rows - start)
            values = rng.random((len(COLUMNS), count)) * (1 - shift) + shift
            writer.write_table(pa.table(dict(zip(COLUMNS, values, strict=True))), GROUP_ROWS)
    part.rename(path)
