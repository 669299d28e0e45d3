"""Record and replay: neighbours must take one path, and their numbers move as declared.

Both neighbours run with the same noise. What gets noise is recorded by an audit hook: the same
mechanisms in the same order with the same scales, and numbers that differ by at most the declared
sensitivity. The second is then given what the mechanisms gave out for the first: all that it
returns, prints, logs, warns of or writes has to be the same, for nothing else was paid for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from privatest.audit.cases import Case
from privatest.audit.coupling import COUPLINGS, Coupling
from privatest.audit.exact import exact_loss, shown_loss
from privatest.audit.neighbours import (
    Pair,
    climbing,
    random_pair,
    sizes_of,
    sorted_pair,
    spread_pair,
    structured_pairs,
)
from privatest.audit.persons import with_more
from privatest.audit.running import Seen, document, seen
from privatest.audit.schemas import SCHEMAS, Bounds
from privatest.audit.telling import telling_pair, turned
from privatest.core.noise import MechanismCall

__all__ = ["Replayed", "Worst", "replay", "search"]

TOLERANCE = 1e-9  # of a ratio: the audit's own rounding
_STRAINING: tuple[Bounds, ...] = ("offset", "wide")
_TELLING_SHARE = 4  # a permutation test gets so many times the pairs, at corners
_STILL_SHARE, _STILL_PAIRS = 20, 200  # pairs more, times and at least, where nothing moved
_WIDE_SHARE = 8  # of the pairs, one in so many goes to each of the strange bounds


@dataclass(frozen=True, slots=True)
class Replayed:
    """What one pair showed.

    Attributes
    ----------
    ratio : float
        How far its numbers moved, in units of the declared sensitivity.
    loss : float
        The exact loss of the mechanisms on them.
    shown : float
        What draws would show of it: less where it sits in rare events.
    pair : Pair or None
        The neighbours.
    path : str
        How their paths differed, "" if they did not.
    mechanism : str
        Which noise the numbers met.
    bounds : str
        Which schema.
    calls : tuple
        Those of both, for mechanisms to be called again.
    """

    ratio: float = -1.0
    loss: float = 0.0
    pair: Pair | None = None
    path: str = ""
    mechanism: str = ""
    bounds: str = "unit"
    calls: tuple[list[MechanismCall], list[MechanismCall]] = ([], [])
    shown: float = 0.0


@dataclass(frozen=True, slots=True)
class Worst:
    """The worst pairs that were found: by movement, by loss, and one whose paths differ.

    Attributes
    ----------
    moved, lost, told : Replayed
        Whose numbers moved furthest; whose outputs can tell most; whose draws do.
    differs : Replayed or None
        Whose paths differ.
    pairs : int
        How many were tried.
    """

    moved: Replayed = Replayed()
    lost: Replayed = Replayed()
    told: Replayed = Replayed()
    differs: Replayed | None = None
    pairs: int = 0

    @property
    def holds(self) -> bool:
        """Whether no number moved too far and no paths differ."""
        return self.differs is None and self.moved.ratio <= 1 + TOLERANCE

    def with_pair(self, found: Replayed) -> Worst:
        """Return the worst with one pair more."""
        if found.path:
            return replace(self, differs=self.differs or found, pairs=self.pairs + 1)
        moved = found if found.ratio > self.moved.ratio else self.moved
        # of equal losses the one that moved further is seen more often
        lost = max(self.lost, found, key=lambda each: (round(each.loss, 9), each.ratio))
        told = max(self.told, found, key=lambda each: (round(each.shown, 9), each.ratio))
        return replace(self, moved=moved, lost=lost, told=told, pairs=self.pairs + 1)


def replay(case: Case, pair: Pair, how: Coupling = "places", *, losses: bool = True) -> Replayed:
    """Run both neighbours with the same noise, and compare all that can be seen.

    Without ``losses`` only paths and movements: the exact loss takes as long as a run.
    """
    pair = with_more(pair, case)
    tables, records = pair.tables(case.schema), pair.stored
    one = seen(case, tables[0], records[0], pair.seed, how)
    other = seen(case, tables[1], records[1], pair.seed, how, one.hook.released)
    path = _difference(one, other)
    if path or one.failed:
        return Replayed(0.0, 0.0, pair, path)
    first, second = one.hook.calls, other.hook.calls
    ratios = [float(np.nan_to_num(a.ratio(b), nan=np.inf)) for a, b in zip(first, second)]  # noqa: B905
    furthest = int(np.argmax(ratios))
    met, losses = first[furthest].mechanism, losses and case.composed
    loss = exact_loss(first, second, case.budget.as_floats[1]) if losses else 0.0
    shown = shown_loss(first, second) if losses else 0.0
    return Replayed(
        ratios[furthest],
        loss,
        pair,
        "",
        met,
        calls=(first, second),
        shown=loss if shown is None else shown,
    )


def _difference(one: Seen, other: Seen) -> str:
    """Return how two runs differ in what is not paid for, "" if they do not."""
    if one.failed != other.failed:
        told = one.failed or other.failed
        return f"one neighbour is answered and the other refused ({told.partition(':')[0]})"
    if one.said != other.said:
        kinds = {message.partition(":")[0] for message in {*one.said} ^ {*other.said}}
        return f"they differ in what is said: {', '.join(sorted(kinds)) or 'how often'}"
    first, second = one.hook.calls, other.hook.calls
    if [m.public for m in first] != [m.public for m in second]:
        return _draws(first, second)
    if one.asked != other.asked:
        return "other noise is asked for, or more often, for one neighbour than for the other"
    if not first and not one.failed:
        return "no number met noise"
    if document(one.result) != document(other.result):
        return "with the same noisy numbers the results differ: something else leaves"
    return ""


def _draws(first: list[MechanismCall], second: list[MechanismCall]) -> str:
    if len(first) != len(second):
        return "noise is drawn more often for one neighbour than for the other"
    place = next(
        i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a.public != b.public
    )
    a, b = first[place], second[place]
    names = ("mechanism", "shape", "norm", "sensitivity", "scale")
    changed = [n for n, x, y in zip(names, a.public, b.public, strict=True) if x != y]
    return f"the {' and '.join(changed)} of draw {place + 1} differ between neighbours"


def search(case: Case, *, pairs: int, seed: int) -> Worst:
    """Look for neighbours whose numbers move furthest: structured, random, then uphill.

    The coupling that fits is the one under which nothing differs.
    """
    worst = Worst()
    for how in COUPLINGS:
        worst = _search(case, pairs, seed, how)
        if worst.holds:
            break
    met = worst.told.calls[0]
    if worst.differs is None and [m.mechanism for m in met] == ["smoothed permutation"]:
        worst = _uphill_by_corners(case, worst, _TELLING_SHARE * pairs, seed, how)
    if worst.differs is None and worst.moved.ratio <= 0:
        worst = _until_it_moves(case, worst, max(_STILL_SHARE * pairs, _STILL_PAIRS), seed, how)
    if case.asked and worst.differs is None:
        worst = _strange_bounds(case, worst, max(pairs // _WIDE_SHARE, 2), seed, how)
    return worst


def _search(case: Case, pairs: int, seed: int, how: Coupling) -> Worst:
    rng, worst, sizes = np.random.default_rng(seed), Worst(), sizes_of(case)
    structured = [pair for size in sizes for pair in structured_pairs(case.schema, size, seed)]
    kept = rng.permutation(len(structured))[: max(pairs // 3, 1)]
    tried = [structured[i] for i in kept]
    tried += [random_pair(case.schema, int(rng.choice(sizes)), rng) for _ in range(pairs // 3)]
    tried += [sorted_pair(case, size, seed) for size in sizes[:2]]
    seen_once = False
    for pair in tried:
        if not seen_once:  # what is only said once, on import, is not said of anybody
            replay(case, pair, how)
            seen_once = True
        worst = worst.with_pair(replay(case, pair, how))
        if worst.differs is not None:
            return worst
    while worst.pairs < pairs and worst.differs is None and worst.moved.pair is not None:
        start = worst.moved if worst.pairs % 4 == 0 else worst.lost
        if start.pair is None:
            break
        nearby = climbing(start.pair, case.schema, case.columns, rng)
        worst = worst.with_pair(replay(case, nearby, how))
    return worst


def _uphill_by_corners(case: Case, worst: Worst, pairs: int, seed: int, how: Coupling) -> Worst:
    """Look for the pair that draws tell apart best: several seeds, then rows turn to corners."""
    rng, best = np.random.default_rng(seed), Replayed()
    for number in range(pairs):
        pair = telling_pair(case, case.rows, int(rng.integers(100_000)))
        if number > pairs // _TELLING_SHARE and best.pair is not None:
            pair = turned(best.pair, case, rng)
        found = replay(case, pair, how)
        worst = worst.with_pair(found)
        if worst.differs is not None:
            break
        if found.shown >= best.shown:  # equal ones too: there are plains to cross
            best = found
    return worst


def _until_it_moves(case: Case, worst: Worst, pairs: int, seed: int, how: Coupling) -> Worst:
    """Look on where no number moved: votes of subsets change only where a p-value is near alpha.

    Rows are independent, so p-values are anywhere, and an extreme row replaces one of them; then
    uphill from a pair that moved something.
    """
    rng, sizes = np.random.default_rng(seed), sizes_of(case)
    for number in range(pairs):
        if worst.differs is not None or worst.moved.ratio >= 1 - TOLERANCE:
            break
        if number % 2 and worst.moved.ratio > 0 and worst.moved.pair is not None:
            pair = climbing(worst.moved.pair, case.schema, case.columns, rng)
        else:
            pair = spread_pair(case.schema, int(rng.choice(sizes)), rng)
        worst = worst.with_pair(replay(case, pair, how))
    return worst


def _strange_bounds(case: Case, worst: Worst, pairs: int, seed: int, how: Coupling) -> Worst:
    """Try some pairs on bounds that strain floats."""
    for bounds in _STRAINING:
        schema = SCHEMAS[bounds]
        other = case.other(bounds)
        rng, tried = np.random.default_rng(seed), list(structured_pairs(schema, case.rows, seed))
        some = [tried[i] for i in rng.permutation(len(tried))[: pairs // 2 + 1]]
        some += [random_pair(schema, case.rows, rng) for _ in range(pairs // 2)]
        for pair in some:
            found = replace(replay(other, pair, how), bounds=bounds)
            worst = worst.with_pair(found)
            if worst.differs is not None:
                return worst
    return worst
