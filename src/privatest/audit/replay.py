"""Record and replay: neighbours must take one path, and values change as declared.

Both neighbours run with the same noise. An audit hook records the values before noise: the same
mechanisms in the same order with the same scales, and values that differ by at most the declared
sensitivity. The second run gets what mechanisms released in the first: all that it returns, prints,
logs, warns of or writes must be the same, since nothing else was paid for.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.audit.cases import SCHEMAS, Bounds, Case
from privatest.audit.coupling import COUPLINGS, Coupling, coupled
from privatest.audit.losses import exact_loss, visible_loss_of
from privatest.audit.neighbours import (
    Pair,
    corner_pair,
    nearby_corner_pair,
    nearby_pair,
    random_pair,
    sizes_of,
    sorted_pair,
    spread_pair,
    structured_pairs,
    with_second_row,
)
from privatest.core.errors import PrivatestError
from privatest.core.noise import AuditHook, MechanismCall, NoiseSource, SimulatedNoise

if TYPE_CHECKING:
    import pyarrow as pa

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.link", "os.symlink", "os.truncate"}


@dataclass(slots=True)
class RunRecord:
    """What a run shows to somebody who sees everything.

    Attributes
    ----------
    hook : AuditHook
        The values that noise was added to.
    noise_calls : list of tuple
        What was asked of the noise source, in order, with its scales.
    result : object
        What came back, None after an error.
    messages : list of str
        Messages, warnings, logs and files.
    error : str
        The error, "" without.
    """

    hook: AuditHook = field(default_factory=AuditHook)
    noise_calls: list[tuple[Any, ...]] = field(default_factory=list)
    result: Any = None
    messages: list[str] = field(default_factory=list)
    error: str = ""


def run_coupled(
    case: Case,
    table: pa.Table,
    records: NDArray[np.intp],
    seed: int,
    how: Coupling,
    given: list[Any] | None = None,
) -> RunRecord:
    """Run a case with simulated noise; secret orders follow the records."""
    found = RunRecord()
    records, groups = _stored(case, table, records, in_order=how == "sorted ranks")
    found.hook = AuditHook(given)
    with coupled(records, groups, seed, how) as found.noise_calls, captured_output(found.messages):
        try:
            found.result = case.run(table, SimulatedNoise(seed, audit=found.hook), rng=seed)
        except PrivatestError as error:
            found.error = f"{type(error).__name__}: {error}"
    return found


def _stored(
    case: Case, table: pa.Table, records: NDArray[np.intp], *, in_order: bool
) -> tuple[NDArray[np.intp], tuple[NDArray[np.intp], ...]]:
    """Return records as a test has them: one group after the other, or sorted in each."""
    parts: tuple[NDArray[np.intp], ...] = (np.arange(len(records)), np.empty(0, np.intp))
    if case.private_groups or case.public_groups:
        group = "group" if case.private_groups else "arm"
        labels = np.array(table.column(group).to_pylist())
        known = case.schema.columns[group].categories  # type: ignore[union-attr]
        parts = tuple(np.flatnonzero(labels == label) for label in known)
    if in_order:
        name = case.columns[0]
        codes = case.schema.select([name]).encode(table.select([name]))[:, 0]
        # of equal values the older record is first, in both neighbours
        parts = tuple(part[np.lexsort((records[part], codes[part]))] for part in parts)
    groups = tuple(records[part] for part in parts)
    return np.concatenate(groups), groups


def run_case(case: Case, table: pa.Table, noise: NoiseSource, rng: int) -> RunRecord:
    """Run a case as it is, without a coupling."""
    found = RunRecord()
    with captured_output(found.messages):
        try:
            found.result = case.run(table, noise, rng=rng)
        except PrivatestError as error:
            found.error = f"{type(error).__name__}: {error}"
    return found


@contextlib.contextmanager
def captured_output(said: list[str]) -> Iterator[None]:
    """Collect all that a block says: printed, warned, logged or written to a file."""
    out, err, logs = io.StringIO(), io.StringIO(), io.StringIO()
    handler, root = logging.StreamHandler(logs), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with (
            warnings.catch_warnings(record=True) as warned,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            _writing() as files,
        ):
            warnings.simplefilter("always")
            yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    said += [f"stdout: {out.getvalue()}"] if out.getvalue() else []
    said += [f"stderr: {err.getvalue()}"] if err.getvalue() else []
    said += [f"log: {logs.getvalue()}"] if logs.getvalue() else []
    said += [f"warning: {w.category.__name__}: {w.message}" for w in warned]
    said += [f"file: {name}" for name in files]


_written: list[list[str]] = []  # one list for each block that watches files


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _written:
        return
    name = str(arguments[0]) if arguments else ""
    opened = event == "open" and (arguments[2] or 0) & _WRITES
    if (opened or event in _CHANGES) and "__pycache__" not in name and name != os.devnull:
        _written[-1].append(name)


@contextlib.contextmanager
def _writing() -> Iterator[list[str]]:
    """Collect names of files that are written; hooks cannot be removed, so there is one."""
    if not getattr(_hook, "added", False):
        sys.addaudithook(_hook)
        _hook.added = True  # type: ignore[attr-defined]
    found: list[str] = []
    _written.append(found)
    try:
        yield found
    finally:
        _written.pop()


def document(result: Any) -> str:
    """Return all that a result says of itself, digit by digit."""
    facts = result.to_dict() if hasattr(result, "to_dict") else result
    if isinstance(facts, np.ndarray):
        facts = facts.tolist()
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        return repr(facts)


TOLERANCE = 1e-9  # of a ratio: the audit's own rounding
_STRAINING: tuple[Bounds, ...] = ("offset", "wide")
_TELLING_SHARE = 4  # a permutation test gets so many times the pairs, at corners
_STILL_SHARE, _STILL_PAIRS = 20, 200  # pairs more, times and at least, where nothing moved
_WIDE_SHARE = 8  # of the pairs, one in so many goes to each of the strange bounds


@dataclass(frozen=True, slots=True)
class PairResult:
    """What one pair showed.

    Attributes
    ----------
    ratio : float
        How far its numbers moved, in units of the declared sensitivity.
    loss : float
        The exact loss of the mechanisms on them.
    visible_loss : float
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
    visible_loss: float = 0.0


@dataclass(frozen=True, slots=True)
class WorstPairs:
    """The worst pairs that were found: by movement, by loss, and one whose paths differ.

    Attributes
    ----------
    moved, lost, visible : PairResult
        Whose numbers moved furthest; whose outputs can tell most; whose draws do.
    differs : PairResult or None
        Whose paths differ.
    pairs : int
        How many were tried.
    """

    moved: PairResult = PairResult()
    lost: PairResult = PairResult()
    visible: PairResult = PairResult()
    differs: PairResult | None = None
    pairs: int = 0

    @property
    def holds(self) -> bool:
        """Whether no number moved too far and no paths differ."""
        return self.differs is None and self.moved.ratio <= 1 + TOLERANCE

    def with_pair(self, found: PairResult) -> WorstPairs:
        """Return the worst with one pair more."""
        if found.path:
            return replace(self, differs=self.differs or found, pairs=self.pairs + 1)
        moved = found if found.ratio > self.moved.ratio else self.moved
        # of equal losses the one that moved further is seen more often
        lost = max(self.lost, found, key=lambda each: (round(each.loss, 9), each.ratio))
        visible = max(
            self.visible, found, key=lambda each: (round(each.visible_loss, 9), each.ratio)
        )
        return replace(self, moved=moved, lost=lost, visible=visible, pairs=self.pairs + 1)


def replay(case: Case, pair: Pair, how: Coupling = "places", *, losses: bool = True) -> PairResult:
    """Run both neighbours with the same noise, and compare all that can be seen.

    Without ``losses`` only paths and movements: the exact loss takes as long as a run.
    """
    pair = with_second_row(pair, case)
    tables, records = pair.tables(case.schema), pair.stored
    one = run_coupled(case, tables[0], records[0], pair.seed, how)
    other = run_coupled(case, tables[1], records[1], pair.seed, how, one.hook.released)
    path = _difference(one, other)
    if path or one.error:
        return PairResult(0.0, 0.0, pair, path)
    first, second = one.hook.calls, other.hook.calls
    ratios = [float(np.nan_to_num(a.ratio(b), nan=np.inf)) for a, b in zip(first, second)]  # noqa: B905
    furthest = int(np.argmax(ratios))
    met, losses = first[furthest].mechanism, losses and case.composed
    loss = exact_loss(first, second, case.budget.as_floats[1]) if losses else 0.0
    shown = visible_loss_of(first, second) if losses else 0.0
    return PairResult(
        ratios[furthest],
        loss,
        pair,
        "",
        met,
        calls=(first, second),
        visible_loss=loss if shown is None else shown,
    )


def _difference(one: RunRecord, other: RunRecord) -> str:
    """Return how two runs differ in what is not paid for, "" if they do not."""
    if one.error != other.error:
        told = one.error or other.error
        return f"one neighbour is answered and the other refused ({told.partition(':')[0]})"
    if one.messages != other.messages:
        kinds = {message.partition(":")[0] for message in {*one.messages} ^ {*other.messages}}
        return f"they differ in what is said: {', '.join(sorted(kinds)) or 'how often'}"
    first, second = one.hook.calls, other.hook.calls
    if [m.public for m in first] != [m.public for m in second]:
        return _draws(first, second)
    if one.noise_calls != other.noise_calls:
        return "other noise is asked for, or more often, for one neighbour than for the other"
    if not first and not one.error:
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


def search(case: Case, *, pairs: int, seed: int) -> WorstPairs:
    """Look for neighbours whose numbers move furthest: structured, random, then uphill.

    The coupling that fits is the one under which nothing differs.
    """
    worst = WorstPairs()
    for how in COUPLINGS:
        worst = _search(case, pairs, seed, how)
        if worst.holds:
            break
    met = worst.visible.calls[0]
    if worst.differs is None and [m.mechanism for m in met] == ["smoothed permutation"]:
        worst = _uphill_by_corners(case, worst, _TELLING_SHARE * pairs, seed, how)
    if worst.differs is None and worst.moved.ratio <= 0:
        worst = _until_it_moves(case, worst, max(_STILL_SHARE * pairs, _STILL_PAIRS), seed, how)
    if case.asked and worst.differs is None:
        worst = _strange_bounds(case, worst, max(pairs // _WIDE_SHARE, 2), seed, how)
    return worst


def _search(case: Case, pairs: int, seed: int, how: Coupling) -> WorstPairs:
    rng, worst, sizes = np.random.default_rng(seed), WorstPairs(), sizes_of(case)
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
        nearby = nearby_pair(start.pair, case.schema, case.columns, rng)
        worst = worst.with_pair(replay(case, nearby, how))
    return worst


def _uphill_by_corners(
    case: Case, worst: WorstPairs, pairs: int, seed: int, how: Coupling
) -> WorstPairs:
    """Look for the pair that draws tell apart best: several seeds, then rows turn to corners."""
    rng, best = np.random.default_rng(seed), PairResult()
    for number in range(pairs):
        pair = corner_pair(case, case.rows, int(rng.integers(100_000)))
        if number > pairs // _TELLING_SHARE and best.pair is not None:
            pair = nearby_corner_pair(best.pair, case, rng)
        found = replay(case, pair, how)
        worst = worst.with_pair(found)
        if worst.differs is not None:
            break
        if found.visible_loss >= best.visible_loss:  # equal ones too: there are plains to cross
            best = found
    return worst


def _until_it_moves(
    case: Case, worst: WorstPairs, pairs: int, seed: int, how: Coupling
) -> WorstPairs:
    """Look on where no number moved: votes of subsets change only where a p-value is near alpha.

    Rows are independent, so p-values are anywhere, and an extreme row replaces one of them; then
    uphill from a pair that moved something.
    """
    rng, sizes = np.random.default_rng(seed), sizes_of(case)
    for number in range(pairs):
        if worst.differs is not None or worst.moved.ratio >= 1 - TOLERANCE:
            break
        if number % 2 and worst.moved.ratio > 0 and worst.moved.pair is not None:
            pair = nearby_pair(worst.moved.pair, case.schema, case.columns, rng)
        else:
            pair = spread_pair(case.schema, int(rng.choice(sizes)), rng)
        worst = worst.with_pair(replay(case, pair, how))
    return worst


def _strange_bounds(
    case: Case, worst: WorstPairs, pairs: int, seed: int, how: Coupling
) -> WorstPairs:
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
