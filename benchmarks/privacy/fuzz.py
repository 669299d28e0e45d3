"""Call everything public with arguments that nobody should pass: what comes out of it?

Only errors of privatest may be raised, no message and no warning may repeat a value of the data
(a canary is in all of them), and a command ends with one line and the exit code 2, not with a
traceback. What to call with is drawn by Hypothesis: mostly good arguments with one or two odd ones.

Run: python -m benchmarks.privacy.fuzz [--minutes 60] [--seed 0] [--commands]. Prints what went
wrong, and writes results/privacy-fuzz.json (or privacy-fuzz-commands.json, of command lines alone).
The same seed draws the same examples; a short, repeatable version is tests/privacy/test_fuzz.py.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import os
import re
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import privatest as pt
from benchmarks.measure import save
from benchmarks.privacy import commands
from benchmarks.privacy.arguments import DATA, GOOD, ODD, is_private, spells_canary

__all__ = ["FUNCTIONS", "attempt", "calls", "quiet_place"]

Call = dict[str, str]
"""The name of what is passed as each argument; a good one is named by its place in a list."""

FUNCTIONS = [name for name in pt.__all__ if inspect.isfunction(getattr(pt, name))]
_SLOWEST = 60.0  # seconds for a call
# Counts that are refused for their type or sign only: a billion permutations are allowed, and slow.
_TOO_MUCH = {"1e308", "10**400", "number as text"}


@st.composite
def calls(draw: st.DrawFn, function: str) -> Call:
    """Draw arguments: a required one is good three times in four, an optional one seldom given."""
    chosen: Call = {}
    for name, parameter in inspect.signature(getattr(pt, function)).parameters.items():
        required = parameter.default is parameter.empty
        if not required and draw(st.integers(0, 9)) < 8:
            continue
        chosen[name] = draw(_values(name, common=required))
    return chosen


def _values(name: str, *, common: bool) -> st.SearchStrategy[str]:
    odd = [key for key in ODD if not (name.startswith("n_") and key in _TOO_MUCH)]
    good = [f"good {place}" for place in range(len(GOOD.get(name, [])))]
    if is_private(name):
        plain = st.sampled_from(["floats", "two columns", "a frame", "booleans"])
        return st.one_of(plain, st.sampled_from(list(DATA)))
    if not good:
        return st.sampled_from(odd)
    kinds = [st.sampled_from(good)] * (3 if common else 1)
    return st.one_of(*kinds, st.sampled_from(odd))


def _made(function: str, call: Call) -> tuple[list[Any], dict[str, Any]]:
    """Return positional and named arguments."""
    rest: list[Any] = []
    named: dict[str, Any] = {}
    for name, label in call.items():
        made = DATA if is_private(name) else ODD
        good = label.startswith("good ")
        value = GOOD[name][int(label[5:])]() if good else made[label]()
        kind = inspect.signature(getattr(pt, function)).parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            rest = [value, value]
        else:
            named[name] = value
    if rest and "x" in named:  # mmd_test(x, y, *others)
        rest = [named.pop("x"), named.pop("y", None), *rest]
    return rest, named


def attempt(function: str, call: Call) -> str | None:
    """Call it; return what went wrong."""
    rest, named = _made(function, call)
    printed = io.StringIO()
    with warnings.catch_warnings(record=True) as shown, contextlib.redirect_stdout(printed):
        warnings.simplefilter("always")
        try:
            getattr(pt, function)(*rest, **named)
        except pt.PrivatestError as error:
            texts = [str(link) for link in _chain(error)]
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{os.path.basename(place.filename)}:{place.lineno}"
            return f"{type(error).__name__} at {where}: {error}"
        else:
            texts = []
    texts += [str(warning.message) for warning in shown]
    if any(map(spells_canary, [*texts, printed.getvalue()])):
        return f"a value in a message: {texts}"
    leaks = [w for w in shown if not issubclass(w.category, (DeprecationWarning, ResourceWarning))]
    return f"a warning: {leaks[0].message}" if leaks else None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, and those that Python prints with it."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)


@contextlib.contextmanager
def quiet_place() -> Iterator[None]:
    """Work in an empty folder, with nothing on standard input and a ledger of its own."""
    kept, before, stdin = os.environ.get("PRIVATEST_LEDGER"), os.getcwd(), sys.stdin
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PRIVATEST_LEDGER"] = os.path.join(folder, "ledger.db")
        os.chdir(folder)
        sys.stdin = io.StringIO("")
        try:
            yield
        finally:
            sys.stdin = stdin
            os.chdir(before)
            del os.environ["PRIVATEST_LEDGER"]
            if kept is not None:
                os.environ["PRIVATEST_LEDGER"] = kept


def _too_slow(*_: object) -> None:
    raise TimeoutError(f"a call took more than {_SLOWEST:g} s")


def _round(target: str, strategy: st.SearchStrategy[Any], trial: Any, turn: int) -> list[str]:
    """Try a target with 20 examples; return what went wrong, not shrunk."""
    found: list[str] = []

    @seed(turn)
    @settings(
        max_examples=20,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def examples(example: Any) -> None:
        signal.setitimer(signal.ITIMER_REAL, _SLOWEST)
        try:
            wrong = trial(example)
        except TimeoutError as error:
            wrong = str(error)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if wrong:
            found.append(f"{target} {example}: {wrong}")

    examples()
    return found


def _kind(text: str) -> str:
    """Return where something went wrong, so that it is told once."""
    place = re.search(r"\S+\.py:\d+", text)
    return place[0] if place else re.sub(r"\{.*?\}|\[.*?\]|\d+", "", text)[:120]


def _targets(only_commands: bool) -> list[tuple[str, Any, Any]]:
    """Return what is called: its name, what to draw for it, and how to call it."""
    functions: list[tuple[str, Any, Any]] = [
        (name, calls(name), lambda call, name=name: attempt(name, call)) for name in FUNCTIONS
    ]
    lines = [(name, commands.lines(name), commands.attempt) for name in commands.COMMANDS]
    return lines if only_commands else functions + lines


def main() -> None:
    """Fuzz until the time is over; print what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn")
    parser.add_argument("--commands", action="store_true", help="command lines alone")
    parser.add_argument("--only", default="", help="names that contain this; nothing is written")
    options = parser.parse_args()
    signal.signal(signal.SIGALRM, _too_slow)
    targets = [target for target in _targets(options.commands) if options.only in target[0]]
    begin, turn, tried = time.monotonic(), 0, Counter[str]()
    end = begin + 60 * options.minutes
    wrong: dict[str, str] = {}
    with quiet_place():
        commands.write_files()
        while time.monotonic() < end:
            name, strategy, trial = targets[turn % len(targets)]
            for text in _round(name, strategy, trial, 1_000_000 * options.seed + turn):
                kind = f"{name} {_kind(text)}"
                if kind not in wrong:
                    print(f"WRONG {text}", flush=True)
                wrong.setdefault(kind, text)
            tried[name] += 20
            turn += 1
    print(f"{tried.total()} calls of {len(tried)} functions and commands; wrong: {len(wrong)}")
    minutes = (time.monotonic() - begin) / 60, time.process_time() / 60
    found = {
        "date": datetime.now(UTC).date().isoformat(),
        "version": pt.__version__,
        "seed": options.seed,
        "calls": tried.total(),
        "targets": len(tried),
        "wrong": list(wrong.values()),
        "minutes": round(minutes[0], 1),
        "of the processor": round(minutes[1], 1),
    }
    if not options.only:
        save("privacy-fuzz-commands" if options.commands else "privacy-fuzz", found)


if __name__ == "__main__":
    main()
