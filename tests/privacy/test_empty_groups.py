"""With private groups nothing depends on how many rows a group has: it may have none."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privatest import ipm_test, ks_2samp, mannwhitneyu, mmd_test, proportions_test, scan
from privatest.audit.coupling import coupled
from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import AuditHook, SimulatedNoise
from privatest.core.privacy import Adjacency
from privatest.data.encoding import encode_several
from privatest.data.schema import CategoricalColumn, Schema

ADJACENCIES: tuple[Adjacency, ...] = ("one", "row")
CATEGORIES = Schema({"a": CategoricalColumn((0, 1)), "b": CategoricalColumn((0, 1))})
TESTS: dict[str, tuple[Any, dict[str, Any]]] = {
    **{f"mmd {method}": (mmd_test, {"method": method}) for method in ("exact", "nystrom")},
    "mmd decision": (mmd_test, {"release": "decision"}),
    "mmd unbounded": (mmd_test, {"bounds": None, "bandwidths": 1.0}),
    **{f"ipm {name}": (ipm_test, {"distance": name}) for name in ("mean", "wasserstein")},
    "ipm kolmogorov": (ipm_test, {"distance": "kolmogorov"}),
    "ipm variation": (ipm_test, {"distance": "total-variation", "bounds": CATEGORIES}),
    "ks": (ks_2samp, {}),
    "kuiper": (ks_2samp, {"statistic": "kuiper"}),
    "ks on a grid": (ks_2samp, {"grid": 4}),
    "kuiper at ranks": (ks_2samp, {"statistic": "kuiper", "epsilon": 10}),
    "ipm wasserstein cells": (ipm_test, {"distance": "wasserstein", "grid": 4}),
    "mann-whitney": (mannwhitneyu, {}),
    "mmd permuted": (mmd_test, {"relabel": "permute"}),
    "mmd swapped in pairs": (mmd_test, {"relabel": "swap"}),
    "proportions": (proportions_test, {"n_simulations": 99}),
    "proportions of labels": (
        proportions_test,
        {"n_simulations": 99, "bounds": None, "success": 1},
    ),
}
NOTHING = {
    "list": [],
    "array": np.array([]),
    "series": pd.Series([], dtype=float),
    "arrow": pa.array([], pa.float64()),
    "frame": pd.DataFrame(),
    "polars": pl.DataFrame(),
    "table": pa.table({}),
    "mapping": {},
    "matrix": np.empty((0, 0)),
    "source": scan(np.empty(0)),
}
ONE_COLUMN = (
    "ks",
    "kuiper",
    "ks on a grid",
    "kuiper at ranks",
    "mann-whitney",
    "proportions",
    "proportions of labels",
    "ipm wasserstein",
    "ipm kolmogorov",
)


@pytest.mark.parametrize("nothing", NOTHING.values(), ids=NOTHING)
@pytest.mark.parametrize("name", TESTS)
def test_an_empty_group_runs_without_a_word(name, nothing, monkeypatch):
    if name == "kuiper at ranks":
        monkeypatch.setattr("privatest.methods.ks.EXACT_ROWS", 0)
    test, options = TESTS[name]
    rows = np.random.default_rng(0).integers(2, size=(20, 2)).astype(float)
    forms: list[Any] = [rows, rows.tolist(), pd.DataFrame(rows, columns=["a", "b"])]
    if name in ONE_COLUMN:
        forms = [rows[:, 0], rows[:, 0].tolist(), rows[:, :1], pd.Series(rows[:, 0])]
    elif name != "ipm variation":
        forms += [rows[:, 0], rows[:, 0].tolist()]
    shared: dict[str, Any] = {"bounds": (0, 1), "epsilon": 1, "adjacency": "row", "rng": 1}
    for data in forms:
        for pair in ((nothing, data), (data, nothing)):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                result = test(*pair, noise=SimulatedNoise(3), **shared | options)
            assert result.sizes == {"N": 20}


# --- three samples ---------------------------------------------------------------------------

THREE: dict[str, dict[str, Any]] = {
    "exact": {"method": "exact"},
    "nystrom": {"method": "nystrom"},
    "decision": {"release": "decision"},
    "unbounded": {"bounds": None, "bandwidths": 1.0},
}
ORDERS = (["b", "c", "a"], ["a", "b", "c"], ["c", "a", "b"])


@pytest.mark.parametrize("nothing", NOTHING.values(), ids=NOTHING)
@pytest.mark.parametrize("name", THREE)
def test_three_samples_of_which_some_are_empty(name, nothing):
    rows = np.random.default_rng(0).integers(2, size=(12, 2)).astype(float)
    forms: list[Any] = [rows, rows.tolist(), pd.DataFrame(rows, columns=["b", "a"]), rows[:, 0]]
    shared: dict[str, Any] = {"bounds": (0, 1), "epsilon": 1, "adjacency": "row", "rng": 1}
    for data, full in itertools.product(forms, itertools.product([False, True], repeat=3)):
        if not any(full):
            continue
        samples = [data if has_rows else nothing for has_rows in full]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = mmd_test(*samples, noise=SimulatedNoise(3), **shared | THREE[name])
        assert result.sizes == {"N": 12 * sum(full)}


def _met(samples: list[Any], records: np.ndarray, options: dict[str, Any], seed: int) -> Any:
    """What meets noise, if every record has the same place in a secret order."""
    sizes = np.cumsum([len(sample) for sample in samples])[:-1]
    groups = tuple(np.split(records, sizes))
    hook = AuditHook()
    with coupled(records, groups, seed, "places"):
        shared: dict[str, Any] = {"bounds": (0, 1), "epsilon": 1, "adjacency": "row"}
        shared |= {"n_permutations": 9}
        mmd_test(*samples, **shared | options, rng=seed, noise=SimulatedNoise(seed, audit=hook))
    (met,) = hook.calls
    return met


@pytest.mark.parametrize("nothing", [[], pd.DataFrame(), None], ids=["list", "frame", "columns"])
@pytest.mark.parametrize("name", ["exact", "nystrom", "unbounded"])
@pytest.mark.parametrize("count", [2, 3])
def test_the_last_row_of_a_sample_whose_columns_are_in_another_order(count, name, nothing):
    """It moves to another sample, and nothing is left that says how its columns were ordered."""
    rng = np.random.default_rng(5)
    for seed, left in itertools.product(range(3), range(count)):
        rows = rng.uniform([0, 0.4, 0.8], [0.2, 0.6, 1.0], size=(24, 3))
        labels = np.array([(left + 1 + i % (count - 1)) % count for i in range(24)])
        labels[0], moved = left, labels.copy()
        moved[0] = (left + 1) % count
        met = []
        for own in (labels, moved):
            samples: list[Any] = []
            for k in range(count):
                frame = pd.DataFrame(rows[own == k], columns=["a", "b", "c"])[ORDERS[k]]
                samples.append(frame if len(frame) or nothing is None else nothing)
            records = np.concatenate([np.flatnonzero(own == k) for k in range(count)])
            options = THREE[name] | ({"relabel": "permute"} if count == 2 else {})
            met.append(_met(samples, records, options, seed))
        assert met[0].public == met[1].public
        assert met[0].ratio(met[1]) <= 1


def test_columns_are_found_by_name_whatever_comes_first():
    rows = np.random.default_rng(1).uniform(size=(4, 3))
    frames = [pd.DataFrame(rows, columns=["a", "b", "c"])[order] for order in ORDERS]
    orders = itertools.permutations([*frames, []])
    for adjacency, data in itertools.product(ADJACENCIES, orders):
        encoded = encode_several(data, (0, 1), adjacency=adjacency)
        kept = [sample.rows for sample in encoded if len(sample)]
        assert all(np.array_equal(own, kept[0]) for own in kept)
        if adjacency == "row":
            assert np.array_equal(kept[0], rows)


ROWS = np.random.default_rng(2).uniform(size=(3, 2))
FORMS: dict[str, Any] = {
    "array": lambda rows: rows,
    "frame": lambda rows: pd.DataFrame(rows, columns=["a", "b"]),
    "other order": lambda rows: pd.DataFrame(rows, columns=["b", "a"]),
    "mapping": lambda rows: {"b": rows[:, 0], "a": rows[:, 1]},
    "source": lambda rows: scan(pd.DataFrame(rows, columns=["b", "a"])),
}
BOUNDS: dict[str, Any] = {
    "none": None,
    "a pair": (0, 1),
    "pairs": [(0, 1), (0, 2)],
    "by name": {"b": (0, 2), "a": (0, 1)},
    "schema": Schema.from_bounds({"b": (0, 2), "a": (0, 1)}),
}


@pytest.mark.parametrize("forms", [*itertools.product(FORMS, repeat=3)], ids="-".join)
def test_a_row_is_encoded_by_a_public_function_of_that_row_alone(forms):
    """The claim of the proof: whichever samples are passed as [], the others' rows are the same."""
    full = [FORMS[form](ROWS + 0.01 * place) for place, form in enumerate(forms)]
    for bounds in BOUNDS.values():
        try:
            expected = encode_several(full, bounds, adjacency="row")
        except (DataError, ParameterError):
            continue
        for empty in itertools.product([False, True], repeat=3):
            data = [[] if gone else own for own, gone in zip(full, empty, strict=True)]
            if all(empty):
                continue
            for own, other, gone in zip(
                encode_several(data, bounds, adjacency="row"), expected, empty, strict=True
            ):
                assert own.schema == other.schema
                assert np.array_equal(own.rows, other.rows[:0] if gone else other.rows)


def test_an_array_has_no_order_among_frames_in_other_orders():
    rows = np.random.default_rng(1).uniform(size=(4, 2))
    one, other = pd.DataFrame(rows, columns=["a", "b"]), pd.DataFrame(rows, columns=["b", "a"])
    for adjacency in ADJACENCIES:
        for data in itertools.permutations([rows, one, other]):
            with pytest.raises(DataError, match="names of columns"):
                mmd_test(*data, bounds=(0, 1), epsilon=1, adjacency=adjacency)
    with pytest.raises(DataError, match="must all have names"):  # whether or not it has rows
        mmd_test(np.empty((0, 2)), one, one, bounds=(0, 1), epsilon=1, adjacency="row")
    bounds = Schema.from_bounds({"a": (0, 1), "b": (0, 1)})
    for data in itertools.permutations([rows, one, other]):
        mmd_test(*data, bounds=bounds, epsilon=1, adjacency="row")


def test_bounds_by_position_are_refused_whichever_samples_have_rows():
    """They were read in the order of the first sample with rows: a refusal told that it has."""
    rows = np.random.default_rng(1).uniform(size=(4, 2))
    one, other = pd.DataFrame(rows, columns=["b", "a"]), pd.DataFrame(rows, columns=["a", "b"])
    forms: list[Any] = [(one, other, []), ([], one, one), (one, [], []), (other, other, other)]
    for data in forms:
        with pytest.raises(ParameterError, match="bounds must be by name"):
            encode_several(data, [(0, 1), (0, 2)], adjacency="row")
        encode_several(data, [(0, 1), (0, 1)], adjacency="row")
    found = encode_several(([], one, one), {"a": (0, 2), "b": (0, 1)}, adjacency="row")
    assert found[1].box.upper.tolist() == [2, 1]
    assert np.allclose(found[1].rows, rows[:, ::-1] / [2, 1])
