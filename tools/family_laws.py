"""Simulate the null laws of ks_family and keep them as tables.

    python -m tools.family_laws                                      what comes with privatest
    python -m tools.family_laws --family rayleigh --output more.npz  a table of your own

A table is written after each row and what is there is not done again: interrupt it and go on.
"""

from __future__ import annotations

import argparse
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.progress import Progress

from privatest.methods.fit_families import (
    BUILT_IN,
    family_named,
    simulate_distances,
    upper_quantiles,
)

OUTPUT = Path(__file__).parent.parent / "src" / "privatest" / "methods" / "family_laws.npz"
SIZES = {
    "ks": (*range(2, 13), 15, 20, 30, 50, 100, 200, 500, 1000, 2000, 5000),
    "kuiper": (*range(2, 9), 10, 12, 15, 20, 30, 50, 100, 200, 500),
}
# n up to which so many samples are drawn: where laws jump there are more
DRAWS = {
    "ks": {10: 30_000, 500: 10_000, 1000: 5_000, 5000: 3_000},
    "kuiper": {5: 4_000, 100: 2_000, 200: 1_500, 500: 1_000},
}

Row = tuple[str, str, int]


def draws(statistic: str, n: int, share: float) -> int:
    """How many samples to draw."""
    usual = next((count for end, count in DRAWS[statistic].items() if n <= end), 1_000)
    return max(1, int(share * usual))


def simulate(row: Row, share: float) -> NDArray[np.float32]:
    """Upper quantiles of one row, rounded up to what is stored."""
    name, statistic, n = row
    rng = np.random.default_rng([zlib.crc32(name.encode()), statistic == "ks", n])
    found = simulate_distances(family_named(name), statistic, n, draws(statistic, n, share), rng)
    quantiles = upper_quantiles(found)
    stored = quantiles.astype(np.float32)
    too_low = stored < quantiles
    stored[too_low] = np.nextafter(stored[too_low], np.float32(np.inf))
    return stored


def load(path: Path) -> dict[Row, NDArray[np.float32]]:
    """Rows that are done."""
    if not path.exists():
        return {}
    with np.load(path) as stored:
        names = [name.removesuffix("/sizes") for name in stored if name.endswith("/sizes")]
        return {
            (*name.split("/"), int(n)): quantiles
            for name in names
            for n, quantiles in zip(
                stored[f"{name}/sizes"], stored[f"{name}/quantiles"], strict=True
            )
        }


def save(path: Path, rows: dict[Row, NDArray[np.float32]]) -> None:
    """Write all tables, first beside the file: an interrupt leaves the old one."""
    arrays = {}
    for name, statistic in sorted({row[:2] for row in rows}):
        sizes = sorted(n for family, kind, n in rows if (family, kind) == (name, statistic))
        arrays[f"{name}/{statistic}/sizes"] = np.array(sizes, dtype=np.int32)
        arrays[f"{name}/{statistic}/quantiles"] = np.stack(
            [rows[name, statistic, n] for n in sizes]
        )
    beside = path.with_suffix(".part.npz")
    np.savez_compressed(beside, allow_pickle=False, **arrays)
    beside.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--family", action="append", help="SciPy's name; may be repeated")
    parser.add_argument("--statistic", action="append", choices=sorted(SIZES))
    parser.add_argument("--size", action="append", type=int, help="a sample size of your own")
    parser.add_argument("--share", type=float, default=1.0, help="of the usual number of draws")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    names = [family_named(name).name for name in options.family or BUILT_IN]
    wanted: list[Row] = [
        (name, statistic, n)
        for statistic in options.statistic or SIZES
        for n in options.size or SIZES[statistic]
        for name in names
    ]
    rows = load(options.output)
    with Progress() as progress:
        for row in progress.track(wanted, description="Simulating"):
            if row not in rows:
                rows[row] = simulate(row, options.share)
                save(options.output, rows)
    print(f"{len(rows)} rows, {options.output.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
