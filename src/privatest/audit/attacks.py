"""Attacks on whole tests that choose their own rows, and what attacks report."""

from __future__ import annotations

import pickle
import struct
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.audit.cases import SCHEMAS, Case
from privatest.audit.coupling import COUPLINGS
from privatest.audit.losses import FALSE_ALARM, by_bits
from privatest.audit.neighbours import Pair, arm_of, strange_pairs, structured_pairs
from privatest.audit.replay import (
    TOLERANCE,
    PairResult,
    RunRecord,
    captured_output,
    document,
    replay,
    run_case,
)
from privatest.core.errors import PrivatestError
from privatest.core.noise import AuditHook, NoiseSource, SecureNoise, SimulatedNoise
from privatest.data.schema import CategoricalColumn, Schema
from privatest.methods.ks import ks_1samp
from privatest.methods.means import private_mean
from privatest.methods.mmd import mmd_test
from privatest.methods.quantiles import private_median
from privatest.methods.signs import sign_test

if TYPE_CHECKING:
    import pyarrow as pa


ATTACKS: Mapping[str, str] = {
    "sensitivity": "numbers move further than declared before they meet noise",
    "replay": "with the same noise neighbours take different paths, or something unpaid leaves",
    "exact": "the laws of the noise, on these numbers, lose more than epsilon",
    "draws": "the mechanisms' own secret noise, on these numbers, loses more than epsilon",
    "runs": "whole runs with secret noise lose more than epsilon",
    "floats": "values that are no ordinary numbers, or low-order bits, tell neighbours apart",
    "outputs": "a planted value is in a result, a message, a pickle or a file",
    "time": "time or memory depend grossly on values, where they are promised not to",
    "level": "a true null hypothesis is rejected too often",
}


@dataclass(frozen=True, slots=True)
class AttackResult:
    """What one attack found.

    Attributes
    ----------
    attack : str
        Which one.
    holds : bool
        Whether it found nothing against the claim.
    told : str
        In words.
    numbers : mapping
        In numbers.
    """

    attack: str
    holds: bool = True
    told: str = ""
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"holds": self.holds, "told": self.told, **self.numbers}


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What an audit of one case found.

    Attributes
    ----------
    case, function : str
        The test, which groups it was asked about, and its public function.
    epsilon, delta : float
        What it claims.
    findings : tuple of AttackResult
        One for each attack that was run.
    """

    case: str
    function: str
    epsilon: float
    delta: float
    findings: tuple[AttackResult, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether nothing was found against the claim."""
        return all(finding.holds for finding in self.findings)

    @property
    def caught_by(self) -> tuple[str, ...]:
        """Which attacks found something."""
        return tuple(finding.attack for finding in self.findings if not finding.holds)

    def number(self, name: str, attack: str = "") -> Any:
        """Return a number of an attack, None if it was not run; of any if none is named."""
        own = [f for f in self.findings if name in f.numbers and attack in ("", f.attack)]
        return own[0].numbers[name] if own else None

    @property
    def epsilon_at_least(self) -> float:
        """The largest lower bound on epsilon from draws of secret noise."""
        found = [f.numbers["epsilon_at_least"] for f in self.findings if f.attack in _DICE]
        return float(max(found, default=0.0))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "test": self.case,
            "function": self.function,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "holds": self.holds,
            "caught_by": list(self.caught_by),
            "attacks": {finding.attack: finding.to_dict() for finding in self.findings},
        }


_DICE = ("draws", "runs")

# Floats. A neighbour with a missing value, an infinity, a subnormal or a number beyond 2^60 must be
# answered like the other one. Noisy numbers of both must lie on the same grid: noise added to a
# float leaves low-order bits that reveal the float (Mironov 2012).


_DRAWS = 4000


def attack_floats(case: Case, seed: int) -> AttackResult:
    """Try strange values on one side, arrays of every kind, and low-order bits."""
    tried = 0
    for pair, strange in _strange(case, seed):
        tried += 1
        told = _worst_of(strange, pair)
        if told:
            return AttackResult("floats", False, f"with {pair.style}: {told}", {"values": tried})
    refused = _kinds(case)
    if refused:
        return AttackResult("floats", False, refused, {"values": tried})
    epsilon, delta = case.budget.as_floats
    bits = by_bits(_far_apart(case, seed), runs=_DRAWS, delta=delta, most=epsilon)
    words = f"{tried} strange values; bits tell epsilon >= {bits.epsilon:.2f}"
    numbers = {"values": tried, "bits_epsilon": bits.epsilon, "event": bits.event}
    return AttackResult("floats", bits.epsilon <= epsilon, words, numbers)


def _strange(case: Case, seed: int) -> Iterator[tuple[Pair, Case]]:
    asked = case.other("missing")
    for pair in strange_pairs(asked.schema, asked.rows, seed, asked.columns):
        yield pair, asked


def _worst_of(case: Case, pair: Pair) -> str:
    """Return what is wrong with a pair under every coupling, "" if one of them fits."""
    told = ""
    for how in COUPLINGS:
        found = replay(case, pair, how, losses=False)
        if not found.path and found.ratio <= 1 + TOLERANCE:
            return ""
        told = told or found.path or f"numbers move {found.ratio:.3g} times what is declared"
    return told


def _far_apart(case: Case, seed: int) -> PairResult:
    """Return a pair whose numbers differ and are near 0, where floats are finest."""
    pairs = list(structured_pairs(case.schema, case.rows, seed))
    found = [replay(case, pair, losses=False) for pair in (*pairs[:3], *pairs[-6:])]

    def far(each: PairResult) -> tuple[bool, bool, float]:
        values = [np.abs(m.values).min(initial=np.inf) for m in each.calls[0]]
        return not each.path, each.ratio > 0, -min(values, default=np.inf)

    return max(found, key=far)


def _kinds(case: Case) -> str:
    """Return which kind of array is refused for one neighbour, "" if none is."""
    call = _TAKES_ARRAYS.get(case.name)
    if call is None:
        return ""
    schema = SCHEMAS["missing"].select(["x"])
    for kind, arrays in _arrays().items():
        states = []
        for array in arrays:
            try:
                call(array, schema, SimulatedNoise(1))
                states.append("answered")
            except PrivatestError as error:
                states.append(type(error).__name__)
        if len({*states}) > 1:
            return f"{kind} arrays: one neighbour is {states[0]}, the other {states[1]}"
    return ""


def _arrays() -> dict[str, tuple[Any, Any]]:
    """Return pairs of arrays of one column; the second has something missing or extreme."""
    import pandas as pd  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    plain = [0.25, 0.5, 0.75] * 4
    gap: list[float | None] = [None, *plain[1:]]
    mask = [True] + [False] * 11
    return {
        "longdouble": (
            np.array(plain, np.longdouble),
            np.array([1e300, *plain[1:]], np.longdouble),
        ),
        "masked": (np.ma.array(plain, mask=[False] * 12), np.ma.array(plain, mask=mask)),
        "pandas nullable": (pd.Series(plain, dtype="Float64"), pd.Series(gap, dtype="Float64")),
        "Arrow": (pa.table({"x": plain}), pa.table({"x": pa.array(gap, pa.float64())})),
        "subnormal": (np.array(plain), np.array([5e-324, *plain[1:]])),
        "not a number": (np.array(plain), np.array([np.nan, *plain[1:]])),
        "beyond 2^60": (np.array(plain), np.array([2.0**60 + 2**10, *plain[1:]])),
    }


_SEEDED: dict[str, Any] = {"epsilon": 1, "rng": 1}
_TAKES_ARRAYS: dict[str, Callable[[Any, Schema, NoiseSource], Any]] = {
    "mean/moments": lambda x, schema, noise: private_mean(x, bounds=schema, noise=noise, **_SEEDED),
    "python/private_median": lambda x, schema, noise: private_median(
        x, bounds=schema, epsilon=1, noise=noise
    ),
    "paired/sign": lambda x, schema, noise: sign_test(x, bounds=schema, epsilon=1, noise=noise),
    "fit/distribution": lambda x, schema, noise: ks_1samp(
        x, "uniform", bounds=schema, noise=noise, **_SEEDED
    ),
    "two-sample/mmd, public groups": lambda x, schema, noise: mmd_test(
        x, x, bounds=schema, n_permutations=19, noise=noise, **_SEEDED
    ),
}

# Outputs: a planted value must be in no result, message, error, pickle or file.


CANARY = 0.7346291058213646
_DIGITS = "734629105821"  # noise never spells as many of them
_WORD = "canary7346291"


def attack_outputs(case: Case, seed: int) -> AttackResult:
    """Plant a number, then a word that no column has, and search all that comes out."""
    pair = next(structured_pairs(case.schema, case.rows, seed))
    places: list[str] = []
    for table, words in ((_planted(case, pair), (_DIGITS,)), (_broken(case, pair), (_WORD,))):
        said: list[str] = []
        try:
            seen = run_case(case, table, SecureNoise(), 1)
        except Exception as error:
            seen = RunRecord(error=f"{type(error).__name__}: {error}")
        places += [name for name, text in everything(seen, said).items() if _found(text, words)]
    told = f"a planted value is in: {', '.join(places)}" if places else "no planted value found"
    return AttackResult("outputs", not places, told, {"places": places})


def _planted(case: Case, pair: Pair) -> pa.Table:
    """Return rows of which every number within the unit interval is the canary."""
    import pyarrow as pa  # noqa: PLC0415

    table = pair.tables(case.schema)[0]
    for name in ("x", "y"):
        values = [CANARY] * (table.num_rows - 2) + [0.0, 1.0]
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return table


def _broken(case: Case, pair: Pair) -> pa.Table:
    """Return rows with a word where there is none: whatever is said of them must not repeat it."""
    import pyarrow as pa  # noqa: PLC0415

    table = pair.tables(case.schema)[0]
    for name in case.columns:
        column, values = case.schema.columns[name], table.column(name).to_pylist()
        if name == "arm":  # public
            continue
        categorical = isinstance(column, CategoricalColumn)
        values = [_WORD, *values[1:]] if categorical else [_WORD, *map(str, values[1:])]
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return table


def everything(seen: RunRecord, said: list[str]) -> dict[str, str | bytes]:
    """Return all that a run says, by where it says it."""
    result = seen.result
    found: dict[str, str | bytes] = {"messages": "\n".join(seen.messages), "error": seen.error}
    if result is None:
        return found
    found |= {"result": document(result), "repr": repr(result), "text": str(result)}
    with captured_output(said):
        found["pickle"] = pickle.dumps(result)
        for name in ("to_json", "_repr_html_", "facts"):
            form: Any = getattr(result, name, None)
            if callable(form):
                found[name] = repr(form())
        for name in ("verdict", "guarantee"):
            if hasattr(result, name):
                found[name] = str(getattr(result, name))
    return found


def _found(text: str | bytes, words: tuple[str, ...]) -> bool:
    if isinstance(text, bytes):
        binary = struct.pack("<d", CANARY), struct.pack(">d", CANARY)
        return any(form in text for form in (*binary, *(word.encode() for word in words)))
    return any(word in text for word in words)


# Level: how often a true null hypothesis is rejected, with few rows, ties, atoms, skew and unequal
# groups. Limits are exact: the binomial probabilities of all cells and of their sum share one error
# of 2.5e-7.


ALPHA = 0.05
# Rates that the proof pages of tests with a measured level allow at level .05; for others .05.
ALLOWED: Mapping[str, float] = {
    "chi2_contingency": 0.06,
    "conditional_independence_test": 0.08,
    "f_oneway": 0.06,
    "hotelling_1samp": 0.06,
    "hotelling_test": 0.06,
    "kendalltau": 0.06,  # with ties, as the next ones; without them the level is proved
    "linregress": 0.07,
    "me_test": 0.06,
    "pearsonr": 0.07,
    "scf_test": 0.06,
    "spearmanr": 0.06,
    "tost_ind": 0.06,
    "tost_rel": 0.06,
    "ttest_1samp": 0.06,
    "ttest_ind": 0.06,
    "ttest_rel": 0.06,
    "wilcoxon": 0.06,
}
_LAWS = ("uniform", "ties", "atoms", "skew", "off centre")
_SYMMETRIC = ("uniform", "ties", "atoms")
_MARGIN = 0.5  # of the made-up requests for equivalence, in units of the bounds
_SPREAD = 0.12  # of a normal law about the middle: one value in 30,000 is beyond the bounds


@dataclass(frozen=True, slots=True)
class Cell:
    """One place of the grid."""

    rows: int
    law: str
    epsilon: float
    first: float  # share of the first group


def hypothesis(case: Case) -> str:
    """Return which null hypothesis a case has, "" for one that tests nothing."""
    question, _, method = case.name.partition(",")[0].partition("/")
    if question in ("mean", "release", "mechanism"):
        return ""
    if method.startswith("tost"):
        return "margin"
    if question != "python":
        fits = "family" if method == "family" else "uniform"
        return fits if question == "fit" else "exchangeable"
    centred = {"binom_test": "coin", "hotelling_1samp": "centred", "ttest_1samp": "centred"}
    made = {
        "permutation_test": "exchangeable",
        "mmd_test": "exchangeable",
        "conditional_randomisation_test": "given",
    }
    return (centred | made).get(method, "")


def attack_level(case: Case, nulls: int, seed: int) -> AttackResult:
    """Count rejections under the null hypothesis over a grid."""
    null = hypothesis(case)
    if not null or not nulls:
        return AttackResult("level", True, "tests no hypothesis", {"cells": []})
    allowed, cells = ALLOWED.get(case.function, ALPHA), list(_cells(case, null))
    counted: list[dict[str, Any]] = []
    worst, alarm = "", FALSE_ALARM / (len(cells) + 1)
    for number, cell in enumerate(cells):
        rejected, answered = _rejections(case, cell, nulls, seed + number)
        rate = {"n": cell.rows, "law": cell.law, "epsilon": cell.epsilon, "first": cell.first}
        counted.append({**rate, "rejected": rejected, "runs": answered})
        if _too_many(rejected, answered, allowed, alarm):
            worst = worst or f"{rejected} of {answered} at {cell}"
    rejected, runs = (sum(int(c[name]) for c in counted) for name in ("rejected", "runs"))
    if _too_many(rejected, runs, allowed, alarm):
        worst = worst or "all cells together"
    told = worst or f"{rejected} of {runs} rejected at level {ALPHA}, {allowed} allowed"
    numbers = {"rejected": rejected, "runs": runs, "allowed": allowed, "cells": counted}
    return AttackResult("level", not worst, told, numbers)


def _too_many(rejected: int, runs: int, allowed: float, alarm: float) -> bool:
    from scipy.stats import binom  # noqa: PLC0415

    return bool(binom.sf(rejected - 1, runs, allowed) < alarm)


def _cells(case: Case, null: str) -> Iterator[Cell]:
    """Return the grid: each law with sizes and budgets that take turns."""
    sizes = (case.rows, case.rows + 41) if case.rows > 40 else (2, 4, 10, 40)
    budgets = (0.01, 0.3, 1.0, 20.0)
    laws: tuple[str, ...] = _SYMMETRIC if null in ("centred", "margin") else _LAWS
    if null in ("uniform", "coin", "given", "family"):
        laws = ("uniform",)
    for number in range(8):  # the fewest rows have the least budget once, and once the largest
        epsilon = budgets[number % len(budgets)]
        rows = sizes[(number + number // len(budgets)) % len(sizes)]
        yield Cell(rows, laws[number % len(laws)], epsilon, (0.5, 0.2)[number % 2])


def _rejections(case: Case, cell: Cell, nulls: int, seed: int) -> tuple[int, int]:
    asked = case.other(epsilon=cell.epsilon)
    rejected = answered = 0
    for run in range(nulls):
        rng = np.random.default_rng([seed, run])
        noise = SimulatedNoise(np.random.SeedSequence([seed, run]))
        found = run_case(asked, _null_rows(case, cell, rng), noise, int(rng.integers(2**31)))
        if not found.error:
            answered += 1
            rejected += bool(found.result.reject)
    return rejected, answered


def _null_rows(case: Case, cell: Cell, rng: np.random.Generator) -> pa.Table:
    """Return independent columns: independence and equality hold, or a difference of a margin."""
    import pyarrow as pa  # noqa: PLC0415

    null, n = hypothesis(case), cell.rows
    first = max(min(2, cell.rows // 2), round(cell.first * cell.rows))
    colours = rng.integers(3, size=n)
    x, y = _law(cell.law, n, rng), _law(cell.law, n, rng)
    count = len(case.schema.columns["arm"].categories)  # type: ignore[union-attr]
    labels = np.array(["a", "b", "c"][:count])
    groups = np.where(rng.random(n) < cell.first, "a", rng.choice(labels[1:], size=n))
    arms = labels[[arm_of(place, n, count, first) for place in range(n)]]
    chances: Any = 0.5 if null == "coin" or cell.law != "skew" else 0.1
    if null == "given":
        x = rng.random(n) * (1 + colours) / 3
    elif null == "family":
        x = rng.normal(0.5, _SPREAD, size=n)
    elif null == "margin":  # what is paired differs by the margin, and so do groups
        own = groups if case.private_groups else arms
        apart = _MARGIN * (own == "a") if case.function != "tost_rel" else _MARGIN
        x, y = apart + (1 - _MARGIN) * x, (1 - _MARGIN) * y
        chances = _MARGIN / 2 + apart
    shares = rng.random(n) < chances
    return pa.table(
        {
            "x": x,
            "y": y,
            "count": np.where(shares, 4, 0),
            "colour": [("red", "green", "blue")[i] for i in colours],
            "yes": np.where(rng.random(n) < (0.5 if cell.law != "skew" else 0.1), "yes", "no"),
            "group": groups,
            "arm": arms,
        }
    )


def _law(law: str, n: int, rng: np.random.Generator) -> Any:
    if law == "ties":
        return rng.integers(3, size=n) / 2
    if law == "atoms":
        return rng.integers(2, size=n) * 1.0
    if law == "skew":
        return rng.beta(0.4, 4.0, size=n)
    return rng.random(n) if law == "uniform" else 0.9 + 0.1 * rng.random(n)


# Time: seconds, function calls and memory on rows of the same public sizes. A curator answers at
# public times, and no test of the catalogue takes a number of steps that depends grossly on values
# unless its entry says so. Smaller differences are measured and not excluded: caches, branches of
# libraries and sorting. All runs get the same released numbers, since computing from them is post-
# processing.


ROWS = 100
_REPEATS = 3  # the least time of as many runs, taken in turns: what else runs here adds, not takes
_GROSS_RATIO, _GROSS_SECONDS, _GROSS_STEPS = 5.0, 0.1, 50_000


def attack_time(case: Case, seed: int) -> AttackResult:
    """Measure runs on rows of several kinds."""
    tables = _tables(case, seed)
    first = AuditHook()
    run_case(case, next(iter(tables.values())), SimulatedNoise(seed, audit=first), seed)

    def run(kind: str) -> None:
        audit = AuditHook(first.released)
        run_case(case, tables[kind], SimulatedNoise(seed, audit=audit), seed)

    seconds = dict.fromkeys(tables, float("inf"))
    for _ in range(_REPEATS):
        for kind in tables:
            start = time.perf_counter()
            run(kind)
            seconds[kind] = min(seconds[kind], time.perf_counter() - start)
    steps = {kind: _steps(partial(run, kind)) for kind in tables}
    memory = {kind: _memory(partial(run, kind)) for kind in tables}
    slow, quick = max(seconds.values()), min(seconds.values())
    many, few = max(steps.values()), min(steps.values())
    gross = slow > _GROSS_RATIO * quick and slow - quick > _GROSS_SECONDS
    gross |= many > _GROSS_RATIO * few and many - few > _GROSS_STEPS
    told = f"time ratio {slow / quick:.2f}, steps {many / few:.2f}"
    if case.caution:
        told += f"; not promised: {case.caution}"
    numbers = {
        "seconds": seconds,
        "steps": steps,
        "peak_bytes": memory,
        "promised": not case.caution,
    }
    return AttackResult("time", bool(case.caution) or not gross, told, numbers)


def _tables(case: Case, seed: int) -> dict[str, pa.Table]:
    """Return rows of the same sizes whose values are as different as can be."""
    import pyarrow as pa  # noqa: PLC0415

    rng, rows = np.random.default_rng(seed), max(ROWS, case.rows)
    found: dict[str, pa.Table] = {}
    for kind in ("constant", "spread", "extreme", "ties"):
        columns: dict[str, Any] = {}
        for name, column in case.schema.columns.items():
            if name == "arm":
                columns[name] = ["a"] * (rows // 2) + ["b"] * (rows - rows // 2)
            elif isinstance(column, CategoricalColumn):
                codes = rng.integers(len(column.categories), size=rows) * (kind != "constant")
                columns[name] = [column.categories[i] for i in codes]
            else:
                columns[name] = _numbers(kind, column, rows, rng)
        found[kind] = pa.table(columns)
    return found


def _numbers(kind: str, column: Any, rows: int, rng: np.random.Generator) -> Any:
    low, high = column.lower, column.upper
    if column.integer:
        drawn = rng.integers(int(low), int(high) + 1, size=rows)
        return np.full(rows, int(low)) if kind == "constant" else drawn
    if kind == "constant":
        return np.full(rows, low)
    if kind == "extreme":
        return np.where(rng.random(rows) < 0.5, low - 1e6 * (high - low), np.nextafter(high, low))
    spread = rng.uniform(low, high, size=rows)
    return spread if kind == "spread" else np.where(spread > (low + high) / 2, high, low)


def _steps(run: Callable[[], None]) -> int:
    """Count calls of functions, Python's and C's: no clock, the same in every run."""
    count = [0]

    def counted(frame: Any, event: str, argument: Any) -> None:
        del frame, argument
        if event in ("call", "c_call"):
            count[0] += 1

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count[0]


def _memory(run: Callable[[], None]) -> int:
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
