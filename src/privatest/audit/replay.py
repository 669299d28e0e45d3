"""Record and replay: neighbours must take one path, and their numbers move as declared.

Both neighbours run with the same noise. What meets noise is witnessed (core/witness.py): the same
mechanisms in the same order with the same scales, and numbers that differ by at most the declared
sensitivity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.audit.cases import SCHEMA, Case
from privatest.audit.coupling import COUPLINGS, Coupling, coupled
from privatest.audit.neighbours import Pair, climbing, random_pair, structured_pairs
from privatest.core.noise import SimulatedNoise
from privatest.core.witness import Meeting, Witness, witnessing

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Worst", "replay", "search"]

_TOLERANCE = 1e-9  # of a ratio: the audit's own rounding


@dataclass(frozen=True, slots=True)
class Worst:
    """The worst pair that was found.

    Attributes
    ----------
    ratio : float
        How far its numbers moved, in units of the declared sensitivity.
    pair : Pair or None
        The neighbours.
    path : str
        How their paths differed, "" if they did not.
    mechanism : str
        Which noise the numbers met.
    pairs : int
        How many pairs were tried.
    """

    ratio: float = 0.0
    pair: Pair | None = None
    path: str = ""
    mechanism: str = ""
    pairs: int = 0

    @property
    def holds(self) -> bool:
        """Whether nothing was found."""
        return not self.path and self.ratio <= 1 + _TOLERANCE


def replay(case: Case, pair: Pair, seed: int, how: Coupling = "places") -> Worst:
    """Run both neighbours with the same noise, and compare what met it."""
    one, other = pair.tables(SCHEMA)
    seen = _witnessed(case, one, seed, how)
    first, second = seen.meetings, _witnessed(case, other, seed, how, seen.released).meetings
    if [m.public for m in first] != [m.public for m in second]:
        return Worst(0.0, pair, _difference(first, second), pairs=1)
    if not first:
        return Worst(0.0, pair, "no number met noise", pairs=1)
    worst = Worst(0.0, pair, "", first[0].mechanism, 1)
    for a, b in zip(first, second, strict=True):
        ratio = a.ratio(b)
        if not ratio <= worst.ratio:  # also where it is not a number
            worst = Worst(float(np.nan_to_num(ratio, nan=np.inf)), pair, "", a.mechanism, 1)
    return worst


def _witnessed(
    case: Case, table: pa.Table, seed: int, how: Coupling, given: list[Any] | None = None
) -> Witness:
    records = np.arange(table.num_rows)
    if case.private_groups:
        second = np.array(table.column("group").to_pylist()) == "b"
        records = np.concatenate([np.flatnonzero(~second), np.flatnonzero(second)])
    with coupled(records, seed, how), witnessing(given) as found:
        case.run(table, SimulatedNoise(seed), rng=seed)
    return found


def _difference(first: list[Meeting], second: list[Meeting]) -> str:
    if len(first) != len(second):
        return "noise is drawn more often for one neighbour than for the other"
    place = next(
        i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a.public != b.public
    )
    a, b = first[place], second[place]
    names = ("mechanism", "shape", "norm", "sensitivity", "scale")
    changed = [n for n, x, y in zip(names, a.public, b.public, strict=True) if x != y]
    return f"the {' and '.join(changed)} of draw {place + 1} differ between neighbours"


def search(case: Case, *, pairs: int, seed: int, size: int | None = None) -> Worst:
    """Look for neighbours whose numbers move furthest: structured, random, then uphill."""
    found = [_search(case, pairs, seed, size or case.rows, how) for how in COUPLINGS]
    return min(found, key=lambda worst: (bool(worst.path), worst.ratio))


def _search(case: Case, pairs: int, seed: int, size: int, how: Coupling) -> Worst:
    rng = np.random.default_rng(seed)
    tried = list(structured_pairs(SCHEMA, size, seed))[: max(pairs // 3, 1)]
    tried += [random_pair(SCHEMA, size, rng) for _ in range(max(pairs // 3, 1))]
    worst, count = Worst(-1.0), 0
    for pair in tried:
        count += 1
        worst = _worse(worst, replay(case, pair, seed + count % 3, how))
        if worst.path:
            break
    while count < pairs and not worst.path and worst.pair is not None:
        count += 1
        nearby = climbing(worst.pair, SCHEMA, case.columns, rng)
        worst = _worse(worst, replay(case, nearby, seed + count % 3, how))
    return Worst(max(worst.ratio, 0.0), worst.pair, worst.path, worst.mechanism, count)


def _worse(one: Worst, other: Worst) -> Worst:
    if one.path:
        return one
    return other if other.path or other.ratio > one.ratio else one
