"""Laws of the distance to a location-scale family under the null hypothesis, from tables.

A table holds quantiles of sqrt(n) · distance for some n, simulated once by tools/family_laws.py.
Each is an upper confidence limit (99%) of the true quantile: p-values that come from it are too
large rather than too small. Between the n of a table quantiles are interpolated in 1/sqrt(n).

More tables: ``python -m tools.family_laws --family rayleigh --output more.npz``, and
``PRIVATEST_FAMILY_LAWS=more.npz`` in the environment. They are public and hold no data.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.laws.law import Law

__all__ = ["CONFIDENCE", "LAWS_VARIABLE", "QuantileTable", "law_table", "upper_quantiles"]

LAWS_VARIABLE = "PRIVATEST_FAMILY_LAWS"
CONFIDENCE = 0.99

Floats = NDArray[np.float64]

# P(distance > quantile), descending; closer together where tests decide
SURVIVALS: Floats = np.concatenate(
    [np.linspace(0.99, 0.2, 80), np.geomspace(0.2, 2e-4, 81)[1:]]
).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class QuantileTable:
    """Quantiles of sqrt(n) · distance, one row for each n.

    A quantile that the simulation was too short to bound is infinite.
    """

    sizes: NDArray[np.int64]
    quantiles: Floats

    def covers(self, n: int) -> bool:
        """Whether the table covers n: it is interpolated above its smallest size."""
        return n >= int(self.sizes[0])

    def upper_law(self, n: int, most: float) -> Law:
        """Return a law of the distance that is not below the true one.

        What lies between two quantiles is put at the upper one; what is above the last one is
        put at ``most``, the largest distance there is.
        """
        last = self.sizes.size - 1
        high = min(int(np.searchsorted(self.sizes, n)), last)
        low = high if int(self.sizes[high]) == n else max(high - 1, 0)
        places = 1 / np.sqrt(self.sizes)
        gap = places[low] - places[high]
        share = (places[low] - 1 / np.sqrt(n)) / gap if gap > 0 else 1.0
        row = _between(self.quantiles[low], self.quantiles[high], share)
        if n > int(self.sizes[last]):  # towards the limit law, along the last two, but never down
            row = np.maximum(row, self.quantiles[last])
        values = np.minimum(row / np.sqrt(n), most)
        masses = -np.diff(np.concatenate([[1.0], SURVIVALS, [0.0]]))
        return Law(np.concatenate([values, [most]]), masses, proved=False)


def _between(first: Floats, second: Floats, share: float) -> Floats:
    """Return first + share · (second - first), infinite where one of the two is."""
    known = np.isfinite(first) & np.isfinite(second)
    row = np.full(first.size, np.inf)
    row[known] = (1 - share) * first[known] + share * second[known]
    return np.maximum.accumulate(row)


def upper_quantiles(draws: Floats) -> Floats:
    """Return upper confidence limits of the quantiles at SURVIVALS from independent draws.

    The probability of exceeding the r-th largest of B draws is at most that of a Beta(r, B + 1 - r)
    variable in law, so P(T > quantile) <= s with confidence 99% for the largest r with
    P(Beta > s) <= 1%.
    """
    from scipy.special import betaincc  # noqa: PLC0415 - only when it is needed

    count = draws.size
    ordered = np.sort(draws)[::-1]
    # the risk P(Beta > s) grows with the rank: bisect for the largest rank with a small one
    low, high = np.zeros(SURVIVALS.size), np.full(SURVIVALS.size, count + 1.0)
    while (high - low > 1).any():
        rank = np.clip(np.floor((low + high) / 2), 1, count)
        safe = betaincc(rank, count + 1 - rank, SURVIVALS) <= 1 - CONFIDENCE
        low, high = np.where(safe, rank, low), np.where(safe, high, rank)
    chosen = low.astype(np.intp)
    result: Floats = np.where(chosen > 0, ordered[chosen - 1], np.inf)
    return result


def law_table(family: str, statistic: str) -> QuantileTable | None:
    """Return the table of a family, the user's own first, or None."""
    key = f"{family}/{statistic}"
    own = os.environ.get(LAWS_VARIABLE)
    tables = (_read(Path(own)) if own else {}), _built_in()
    return next((table[key] for table in tables if key in table), None)


@lru_cache(maxsize=1)
def _built_in() -> Mapping[str, QuantileTable]:
    with as_file(files("privatest.laws") / "family_laws.npz") as path:
        return _read(path) if path.exists() else {}


@lru_cache(maxsize=8)
def _read(path: Path) -> Mapping[str, QuantileTable]:
    try:
        with np.load(path, allow_pickle=False) as stored:
            names = [name.removesuffix("/sizes") for name in stored if name.endswith("/sizes")]
            laws = {
                name: QuantileTable(
                    stored[f"{name}/sizes"].astype(np.int64),
                    stored[f"{name}/quantiles"].astype(np.float64),
                )
                for name in names
            }
    except (OSError, ValueError, KeyError):
        raise ParameterError(f"{LAWS_VARIABLE} must name a file of tools/family_laws.py.") from None
    if any(law.quantiles.shape != (law.sizes.size, SURVIVALS.size) for law in laws.values()):
        raise ParameterError(f"{LAWS_VARIABLE} must name a file of this version's tools.")
    return laws
