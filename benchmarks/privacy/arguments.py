"""What the fuzzing of :mod:`benchmarks.privacy.fuzz` passes: people with a canary, and odd things.

Everything is made anew by a function under a name, so that nothing is shared between calls, and a
call that went wrong can be read.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import privatest as pt

__all__ = ["CANARY", "DATA", "DIGITS", "GOOD", "ODD", "PRIVATE", "is_private", "spells_canary"]

Make = Callable[[], Any]

CANARY = 0.7346291058213646
WHOLE = 7346291058213
DIGITS = "7346291"  # of both, and of the word below
WORD = "canary-7346291"
N = 24

_VALUES = np.random.default_rng(0).random(N)
_VALUES[::5] = CANARY
_GROUPS = ["u", "v"] * (N // 2)

# Parameters that hold people; everything else is public.
PRIVATE = {"x", "y", "z", "data", "samples", "others", "public_x", "public_y"}


def is_private(name: str) -> bool:
    """Whether a parameter holds people."""
    return name in PRIVATE


def spells_canary(text: str) -> bool:
    """Whether a text repeats a planted value, however its digits are grouped."""
    return DIGITS in text.replace("_", "").replace(",", "").replace(" ", "")


def frame() -> pd.DataFrame:
    """Two columns of numbers and a group."""
    return pd.DataFrame({"a": _VALUES, "b": _VALUES[::-1], "g": _GROUPS})


def gap(x: Any, y: Any) -> Any:
    """A statistic of the user's own."""
    return abs(np.mean(x) - np.mean(y))


def fails(*_: Any, **__: Any) -> Any:
    """A function that knows the data and tells it."""
    raise ValueError(f"saw {CANARY}")


def _duplicate_names() -> pd.DataFrame:
    return pd.DataFrame(np.stack([_VALUES, _VALUES], axis=1), columns=["a", "a"])


DATA: dict[str, Make] = {
    "floats": _VALUES.copy,
    "two columns": lambda: np.stack([_VALUES, _VALUES[::-1]], axis=1),
    "a list": _VALUES.tolist,
    "a frame": frame,
    "a series": lambda: pd.Series(_VALUES),
    "booleans": lambda: _VALUES > 0.5,
    "words": lambda: [WORD, "u", "v"] * 8,
    "a table": lambda: pa.table({"a": _VALUES, "g": _GROUPS}),
    "polars": lambda: pl.DataFrame({"a": _VALUES, "g": _GROUPS}),
    "names": lambda: {"a": _VALUES.tolist()},
    "whole numbers": lambda: np.full(N, WHOLE),
    "huge": lambda: np.full(N, CANARY * 1e308),
    "subnormal": lambda: np.full(N, CANARY * 1e-310),
    "missing": lambda: np.append(_VALUES, np.nan),
    "infinite": lambda: np.append(_VALUES, -np.inf),
    "one row": lambda: np.array([CANARY]),
    "two rows": lambda: np.array([CANARY, 0.1]),
    "no rows": lambda: np.array([]),
    "no columns": lambda: np.empty((5, 0)),
    "all equal": lambda: np.full(N, CANARY),
    "masked": lambda: np.ma.masked_greater(_VALUES, 0.7),
    "nullable": lambda: pd.array([WHOLE, None, 3], dtype="Int64"),
    "categories": lambda: pd.Series(pd.Categorical([WORD, "u", "v"] * 8)),
    "same names": _duplicate_names,
    "names of numbers": lambda: pd.DataFrame({0: _VALUES, 1.5: _VALUES}),
    "names of tuples": lambda: pd.DataFrame({("a", "b"): _VALUES}),
    "table with null": lambda: pa.table({"a": pa.array([CANARY, None])}),
    "nested table": lambda: pa.table({"a": [[CANARY], [WHOLE, 1.0]]}),
    "lazy": lambda: pl.LazyFrame({"a": _VALUES}),
    "unequal": lambda: {"a": [CANARY], "b": [CANARY, 1]},
    "ragged": lambda: [[CANARY], [CANARY, 1.0]],
    "objects": lambda: np.array([CANARY, object(), WORD], dtype=object),
    "decimals": lambda: [Decimal(str(CANARY))] * 5,
    "longdouble": lambda: np.array([np.longdouble(WHOLE)] * 5) ** 90,
    "half": lambda: _VALUES.astype(np.float16),
    "complex": lambda: _VALUES + 1j,
    "dates": lambda: np.array([WHOLE], dtype="datetime64[ms]"),
    "durations": lambda: pd.Series(pd.to_timedelta([WHOLE // 10**4], unit="s")),
    "bytes": lambda: np.array([WORD.encode()]),
    "records": lambda: np.array([(CANARY, WHOLE)], dtype=[("a", "f8"), ("b", "i8")]),
    "three dimensions": lambda: np.full((2, 2, 2), CANARY),
    "a number": lambda: CANARY,
    "no dimensions": lambda: np.array(CANARY),
    "a word": lambda: WORD,
    "a set": lambda: {CANARY, 1.0},
    "a generator": lambda: (value for value in [CANARY, 1.0]),
    "nothing": lambda: None,
}

ODD: dict[str, Make] = {
    "None": lambda: None,
    "True": lambda: True,
    "-1": lambda: -1,
    "0": lambda: 0,
    "2.5": lambda: 2.5,
    "1e-320": lambda: 1e-320,
    "1e308": lambda: 1e308,
    "10**400": lambda: 10**400,
    "nan": lambda: float("nan"),
    "-inf": lambda: float("-inf"),
    "np.nan32": lambda: np.float32("nan"),
    "1j": lambda: 1j,
    "fraction": lambda: Fraction(1, 3),
    "decimal nan": lambda: Decimal("sNaN"),
    "empty text": lambda: "",
    "text": lambda: "x",
    "odd text": lambda: "é\0\ud800",
    "number as text": lambda: "1e400",
    "bytes": lambda: b"x",
    "[]": lambda: [],
    "()": lambda: (),
    "{}": lambda: {},
    "{1: 2}": lambda: {1: 2},
    "[nan]": lambda: [float("nan")],
    "[None, None]": lambda: [None, None],
    "['a', 1]": lambda: ["a", 1],
    "(1, 0)": lambda: (1, 0),
    "(-1e308, 1e308)": lambda: (-1e308, 1e308),
    "(0, 1e-320)": lambda: (0, 1e-320),
    "nested": lambda: [[[1]]],
    "recursive": lambda: _recursive(),  # noqa: PLW0108 -- defined below
    "set": lambda: {1, "a"},
    "generator": lambda: iter([]),
    "object": object,
    "class": lambda: int,
    "function that fails": lambda: fails,
    "function of nothing": lambda: lambda: 1,
    "date": lambda: datetime.date(2020, 1, 1),
    "empty array": lambda: np.array([]),
    "object array": lambda: np.array([None, "a"], dtype=object),
    "datetime array": lambda: np.array(["2020"], dtype="datetime64[Y]"),
    "empty frame": pd.DataFrame,
    "people": frame,  # passed in the wrong place
    "people's values": _VALUES.copy,
    "schema": lambda: pt.Schema.from_bounds({"b": (0, 1)}),
    "outcome": lambda: pt.sign_test(_VALUES - 0.5, epsilon=1),
}


def _recursive() -> list[Any]:
    itself: list[Any] = []
    itself.append(itself)
    return itself


def _schema() -> pt.Schema:
    return pt.Schema.from_bounds({"a": (0, 1)})


def _plan() -> pt.SharePlan:
    return pt.plan_share((0, 1), epsilon=1, delta=1e-6, locations=2, rng=0)


def _embedding() -> pt.Outcome:
    return pt.me_test(_VALUES, _VALUES, locations=2, bounds=(0, 1), epsilon=1, delta=1e-6)


_BOUNDS: list[Make] = [
    lambda: (0, 1), lambda: [(0, 1), (0, 1)], lambda: {"a": (0, 1)}, _schema, lambda: (0, 1e300)
]  # fmt: skip
_COUNT: list[Make] = [lambda: 9, lambda: 99]
_WIDTH: list[Make] = [lambda: 0.5, lambda: [0.2, 0.5]]

GOOD: dict[str, list[Make]] = {
    "epsilon": [lambda: 1, lambda: "0.5", lambda: Decimal(2), lambda: 1e6, lambda: 1e-3],
    "delta": [lambda: 0, lambda: 1e-6, lambda: "1e-5"],
    "alpha": [lambda: 0.05, lambda: 0.9],
    **dict.fromkeys(("bounds", "bounds_x", "bounds_y", "bounds_z"), _BOUNDS),
    **dict.fromkeys(
        ("n_permutations", "n_bootstrap", "n_simulations", "n_resamples", "n_subsets"), _COUNT
    ),
    **dict.fromkeys(("bandwidth", "bandwidths", "bandwidths_x", "bandwidths_y"), _WIDTH),
    "rng": [lambda: 0],
    "noise": [lambda: None],
    "group": [lambda: "g", lambda: "a"],
    "groups": [lambda: ("u", "v"), lambda: ("u", "v", "w")],
    "columns": [lambda: ["a"], lambda: "b"],
    "adjacency": [lambda: "one", lambda: "both", lambda: "row"],
    "alternative": [lambda: "less", lambda: "greater"],
    "kernel": [lambda: "laplace", lambda: "imq"],
    "release": [lambda: "decision", lambda: "statistic", lambda: "moments"],
    "scheme": [lambda: "independence", lambda: "two-sample"],
    "success": [lambda: "u", lambda: 1],
    "categories": [lambda: ("u", "v", WORD)],
    "categories_x": [lambda: ("u", "v", WORD)],
    "categories_y": [lambda: ("u", "v")],
    "cdf": [lambda: "uniform", lambda: "norm(0, 1)", lambda: lambda x: np.clip(x, 0, 1)],
    "family": [lambda: "norm", lambda: "expon"],
    "distance": [lambda: "mean", lambda: "wasserstein", lambda: "kolmogorov"],
    "statistic": [lambda: gap, lambda: "kuiper", lambda: "ks"],
    "sensitivity": [lambda: 1.0, lambda: lambda n, m: 1 / min(n, m)],
    "locations": [lambda: 2, lambda: [[0.5], [0.1]]],
    "frequencies": [lambda: 2, lambda: [[1.0], [2.0]]],
    "n_locations": [lambda: 2],
    "n_frequencies": [lambda: 20],
    "n_points": [lambda: 10],
    "n_starts": [lambda: 1],
    "sizes": [lambda: (50, 50)],
    "pvalue": [lambda: "ttest_ind", lambda: "spearmanr", lambda: fails],
    "quantile": [lambda: lambda u, _: u],
    "method": [lambda: "exact", lambda: "tables", lambda: "subspace", lambda: "holm"],
    "mean": [lambda: 0.5, lambda: [0.5, 0.5]],
    "popmean": [lambda: 0.5],
    "low": [lambda: -0.2],
    "high": [lambda: 0.2],
    "plan": [_plan],
    "cells": [lambda: 16],
    "check_sensitivity": [lambda: False],
    "f_exp": [lambda: [0.5, 0.5]],
    "results": [lambda: [pt.sign_test(_VALUES - 0.5, epsilon=1)]],
    "outcome": [_embedding],
    "shares": [lambda: [pt.share(_VALUES, plan=_plan())] * 2],
    "a": [lambda: pt.share(_VALUES, plan=_plan())],
    "b": [lambda: pt.share(_VALUES, plan=_plan())],
    "url": [lambda: "http://127.0.0.1:9", lambda: "sqlite:///none.db"],
    "table": [lambda: "people"],
    "token": [lambda: "t"],
    "timeout": [lambda: 0.1],
    "dataset": [lambda: "people"],
    "ledger": [lambda: "ledger.db"],
}  # fmt: skip
