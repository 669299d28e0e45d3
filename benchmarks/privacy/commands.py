"""Command lines for the fuzzing of :mod:`benchmarks.privacy.fuzz`: options of every command."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import typer
from hypothesis import strategies as st

from benchmarks.privacy.arguments import CANARY, DIGITS, spells_canary
from privatest.cli import app, main

__all__ = ["COMMANDS", "attempt", "lines", "write_files"]

# Those that serve until they are stopped, or take minutes by their nature.
_LONG = ("serve", "audit", "demo", "curator calibrate", "plan rank", "plan size", "plan effect",
         "plan epsilon")  # fmt: skip
_SCHEMA = """
[columns.a]
type = "numeric"
bounds = [0, 1]
[columns.g]
type = "categorical"
categories = ["u", "v"]
"""
_FILES = ("people.csv", "people.parquet", "text.csv", "empty.csv", "header.csv", "ragged.csv",
          "bytes.csv", "no.parquet", "nulls.parquet", "gone.csv", ".", "people.toml", "bad.toml",
          "", "plan.json", "-")  # fmt: skip
_WORDS = (
    *("a", "b", "g", "u", "v", "a,b", "", " ", "x", "é", "\ud800", "--", "a" * 300),
    *("0", "1", "-1", "0.5", "1e-6", "1e400", "nan", "-inf", "12345678901234567890"),
    *("a=0:1", "a=1:0", "g=0:1", "a=nan:1", "=:", "1/0", "__import__('os')"),
    *("people.toml", "bad.toml", "gone.toml", "people.csv", "out.json", "."),
    *("norm", "uniform(0, 1)", "norm(", "ks", "mean", "ttest", "mann-whitney", "tables"),
    *("one", "row"),
)
_FREQUENT = {
    "--epsilon": "1",
    "--group": "g",
    "--groups": "u",
    "--bounds": "a=0:1",
    "--schema": "people.toml",
    "--columns": "a",
    "--column": "a",
    "--x": "a",
    "--y": "b",
    "--before": "a",
    "--after": "b",
    "--permutations": "9",
}


def _commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield " ".join(path), command
        return
    for name, child in inner.items():
        yield from _commands(child, (*path, name))


COMMANDS = {
    name: command for name, command in _commands(typer.main.get_command(app)) if name not in _LONG
}


@st.composite
def lines(draw: st.DrawFn, name: str) -> list[str]:
    """Draw a command line: the command, files, and some options of its own."""
    words = name.split()
    for parameter in COMMANDS[name].params:
        if parameter.param_type_name == "argument":
            words += [draw(st.sampled_from(_FILES[:3])) if draw(st.booleans()) else draw(_TEXTS)]
            continue
        flag = parameter.opts[0]
        given = parameter.required or draw(st.integers(0, 9)) < (6 if flag in _FREQUENT else 2)
        if flag == "--help" or not given:
            continue
        words.append(flag)
        if not getattr(parameter, "is_flag", False):
            words += [_value(draw, flag) for _ in range(max(1, parameter.nargs))]
    return words


_TEXTS = st.one_of(st.sampled_from(_FILES), st.sampled_from(_WORDS))


def _value(draw: st.DrawFn, flag: str) -> str:
    if flag in _FREQUENT and draw(st.integers(0, 3)):
        return _FREQUENT[flag]
    return draw(_TEXTS)


def write_files() -> None:
    """Write the files that commands are given, good and bad, each with the canary in it."""
    rng = np.random.default_rng(1)
    values = np.append(rng.random(39), CANARY)
    people = pa.table({"a": values, "b": values[::-1], "g": ["u", "v"] * 20})
    pyarrow.csv.write_csv(people, "people.csv")
    pq.write_table(people, "people.parquet")
    pq.write_table(pa.table({"a": [CANARY, None], "g": ["u", None]}), "nulls.parquet")
    bad = {
        "text.csv": f"a,b,g\ncanary-{DIGITS},1,u\n{CANARY},{DIGITS},w\n",
        "empty.csv": "",
        "header.csv": "a,b,g\n",
        "ragged.csv": f"a,b,g\n{CANARY},1\n{CANARY},1,u,4,5\n",
        "no.parquet": f"PAR1{CANARY}",
        "people.toml": _SCHEMA,
        "bad.toml": "[columns.a]\ntype = 3\nbounds = [1",
        "plan.json": '{"format": "privatest", "a": [1, 2',
    }
    for name, text in bad.items():
        Path(name).write_text(text)
    Path("bytes.csv").write_bytes(b"a,b,g\n\xff\xfe" + str(CANARY).encode() + b",\x00,u\n")


def attempt(line: list[str]) -> str | None:
    """Run a command line; return what went wrong."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(line)
        except Exception as error:
            return f"{type(error).__name__} left the command: {error}"
    said = err.getvalue()
    if code not in (0, 1, 2) or "internal error" in said or "Traceback" in said:
        return f"exit code {code}: {said[-1500:]}"
    if spells_canary(said) or (code and spells_canary(out.getvalue())):
        return f"a value in a message: {said[-300:]}"
    return None
