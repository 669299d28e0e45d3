"""Whatever is passed: errors of privatest only, no value in a message, no traceback.

The same examples in every run; an hour of others is ``python -m benchmarks.privacy.fuzz``.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import Phase, given, settings

import privatest as pt
from benchmarks.privacy import commands, fuzz
from benchmarks.privacy.arguments import CANARY, GOOD, spells_canary

few = settings(max_examples=4, phases=[Phase.generate])
fewer = settings(few, max_examples=2)


@pytest.fixture(autouse=True, scope="module")
def place() -> Iterator[None]:
    with fuzz.quiet_place():
        commands.write_files()
        yield


@pytest.mark.parametrize("function", fuzz.FUNCTIONS)
def test_functions_refuse_in_their_own_words(function: str) -> None:
    @few
    @given(fuzz.calls(function))
    def examples(call: fuzz.Call) -> None:
        assert fuzz.attempt(function, call) is None

    examples()


@pytest.mark.parametrize("command", commands.COMMANDS)
def test_commands_refuse_in_one_line(command: str) -> None:
    @fewer
    @given(commands.lines(command))
    def examples(line: list[str]) -> None:
        assert commands.attempt(line) is None

    examples()


def test_wrong_answers_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the fuzzing looks for, planted: another error, a warning, a value in a message."""

    def planted(results: str) -> None:
        if results == "people":
            raise ValueError("plain")
        raise pt.DataError(f"column 'a' holds {CANARY:.8g}")

    monkeypatch.setattr(pt, "adjust", planted)
    monkeypatch.setitem(GOOD, "results", [lambda: "people", lambda: "value"])
    assert "ValueError at" in str(fuzz.attempt("adjust", {"results": "good 0"}))
    assert "a value in a message" in str(fuzz.attempt("adjust", {"results": "good 1"}))
    assert spells_canary(f"{CANARY * 1e13:_.0f}")
    assert not spells_canary("0.73")


def test_all_public_functions_are_called() -> None:
    assert {"mmd_test", "permutation_test", "release", "budget", "scan_sql"} <= {*fuzz.FUNCTIONS}
    assert {"two-sample", "release", "ledger init", "curator run"} <= {*commands.COMMANDS}


@pytest.mark.parametrize(
    ("function", "call"),
    [
        ("connect", {"url": "(1, 0)", "token": "good 0"}),
        ("connect", {"url": "schema", "token": "good 0"}),
        ("connect", {"url": "good 0", "token": "empty frame"}),
        ("report", {"result": "outcome", "path": "None"}),
    ],
)
def test_what_fuzzing_found(function: str, call: fuzz.Call) -> None:
    assert fuzz.attempt(function, call) is None


def test_a_name_that_is_too_long_is_refused_in_one_line() -> None:
    assert commands.attempt(["report", "people.toml", "--output", "a" * 300]) is None
