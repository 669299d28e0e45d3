"""Documents that were edited, cut short, or are of another kind are refused with the reason."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privatest import DataError, ParameterError, Schema
from privatest.core.documents import fingerprint
from privatest.data.schema import CategoricalColumn, NumericColumn
from privatest.methods.shares import Share, SharePlan, compare, plan_share, share
from privatest.noise import SimulatedNoise

SCHEMA = Schema({"a": NumericColumn(0, 1), "b": CategoricalColumn(("x", "y", "z"))})
PLAN = plan_share(SCHEMA, epsilon="0.7", delta="1e-6", locations=3)
TABLE = {"a": np.linspace(0, 1, 30), "b": ["x", "y"] * 15}
SHARE = share(TABLE, plan=PLAN, noise=SimulatedNoise(1))
OTHER = share(TABLE, plan=PLAN, noise=SimulatedNoise(2))
TEXT = SHARE.to_json()
DOCUMENT: dict[str, Any] = json.loads(TEXT)


def resealed(document: dict[str, Any]) -> str:
    """An edit by somebody who also corrects the checksum."""
    document = {key: value for key, value in document.items() if key != "checksum"}
    return json.dumps(document | {"checksum": fingerprint(document)})


def redigested(document: dict[str, Any]) -> str:
    """An edit of the plan by somebody who also corrects the digest."""
    document["digest"] = fingerprint(document["plan"])
    return resealed(document)


def edited(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    document = copy.deepcopy(DOCUMENT)
    change(document)
    return document


def test_the_document_itself_is_taken():
    assert Share.from_json(resealed(DOCUMENT)).checksum == SHARE.checksum
    assert Share.from_json(redigested(copy.deepcopy(DOCUMENT))).checksum == SHARE.checksum
    assert Share.from_json(b"\xef\xbb\xbf" + TEXT.encode()).checksum == SHARE.checksum
    assert Share.from_json(json.dumps(DOCUMENT, sort_keys=True)).checksum == SHARE.checksum


@pytest.mark.parametrize("key", [*DOCUMENT])
def test_a_missing_key_is_refused(key):
    document = edited(lambda d: d.pop(key))
    with pytest.raises(DataError):
        Share.from_json(json.dumps(document))
    if key != "checksum":
        with pytest.raises(DataError):
            Share.from_json(resealed(document))


@pytest.mark.parametrize("key", [*DOCUMENT["plan"]])
def test_a_missing_parameter_is_refused(key):
    with pytest.raises(DataError):
        Share.from_json(redigested(edited(lambda d: d["plan"].pop(key))))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d["mean"].__setitem__(0, 0.5), "checksum"),
        (lambda d: d.update(n=31), "checksum"),
        (lambda d: d.update(simulated=False), "checksum"),
        (lambda d: d.update(more=1), "checksum"),
        (lambda d: d["plan"].update(epsilon="0.1"), "checksum"),
        (lambda d: d.update(checksum="0" * 64), "checksum"),
        (lambda d: d.update(checksum=1), "checksum"),
        (lambda d: d.update(version=2), "version"),
        (lambda d: d.update(version=True), "version"),
        (lambda d: d.update(version="1"), "version"),
        (lambda d: d.update(format="privatest plan of shares"), "not a privatest share"),
        (lambda d: d.update(format=None), "not a privatest share"),
    ],
)
def test_an_edit_is_seen(change, reason):
    with pytest.raises(DataError, match=reason):
        Share.from_json(json.dumps(edited(change)))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d.update(n=1), "'n' is out of range"),
        (lambda d: d.update(n=2**60), "'n' is out of range"),
        (lambda d: d.update(n=30.0), "'n' is missing or of another type"),
        (lambda d: d.update(n=31), "noise does not match"),
        (lambda d: d.update(sigma=d["sigma"] / 2), "noise does not match"),
        (lambda d: d.update(sigma=0), "'sigma' must be above 0"),
        (lambda d: d.update(sigma=-1.0), "'sigma' must be above 0"),
        (lambda d: d.update(sigma=None), "'sigma'"),
        (lambda d: d.update(sigma_second="1"), "'sigma_second'"),
        (lambda d: d.update(sigma_second=1e300), "noise does not match"),
        (lambda d: d["mean"].pop(), "'mean' does not hold"),
        (lambda d: d["mean"].__setitem__(0, None), "'mean' does not hold"),
        (lambda d: d["mean"].__setitem__(0, True), "'mean' does not hold"),
        (lambda d: d["mean"].__setitem__(0, [1.0]), "'mean' does not hold"),
        (lambda d: d["mean"].__setitem__(0, 1e300), "noise cannot explain"),
        (lambda d: d["mean"].__setitem__(0, 10**400), "'mean' does not hold"),
        (lambda d: d["second"].append(0.0), "'second' does not hold"),
        (lambda d: d["second"].__setitem__(1, -1e9), "noise cannot explain"),
        (lambda d: d.update(second={}), "'second' is missing"),
        (lambda d: d.update(simulated=0), "'simulated'"),
        (lambda d: d.update(digest="0" * 64), "digest"),
        (lambda d: d["plan"].update(epsilon="0.1"), "digest"),
        (lambda d: d["plan"].update(more=1), "digest"),
        (lambda d: d.update(plan=[]), "'plan'"),
    ],
)
def test_an_edit_with_a_new_checksum_is_seen_where_it_cannot_be(change, reason):
    with pytest.raises(DataError, match=reason):
        Share.from_json(resealed(edited(change)))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda p: p.update(epsilon="0"), "epsilon must be"),
        (lambda p: p.update(epsilon=None), "epsilon must be"),
        (lambda p: p.update(epsilon=[1]), "epsilon must be"),
        (lambda p: p.update(delta="0"), "delta must be"),
        (lambda p: p.update(delta="1e-99999"), "delta must be"),
        (lambda p: p.update(epsilon=0.7), "digest"),  # not the one way to write it
        (lambda p: p.update(epsilon="0.70"), "digest"),
        (lambda p: p.update(balance=0), "balance must be"),
        (lambda p: p.update(balance=1), "digest"),
        (lambda p: p.update(kernel="cubic"), "kernel must be"),
        (lambda p: p.update(kernel=None), "kernel must be"),
        (lambda p: p.update(bandwidth=None), "bandwidth must be"),
        (lambda p: p.update(bandwidth=1e-300), "bandwidth must be"),
        (lambda p: p.update(features="others"), "features must be"),
        (lambda p: p.update(features="characteristic function"), "'frequencies'"),
        (lambda p: p.update(rows_per_person=0), "rows_per_person must be"),
        (lambda p: p.update(rows_per_person=True), "'rows_per_person'"),
        (lambda p: p.update(columns=[]), "columns"),
        (lambda p: p.update(columns=[1]), "'columns'"),
        (lambda p: p.update(columns=p["columns"][:1] * 2), "a name twice"),
        (lambda p: p["columns"][0].update(name="\ud800"), "cannot be printed"),
        (lambda p: p["columns"][0].update(type="other"), "'columns'"),
        (lambda p: p["columns"][0].update(bounds=[1, 0]), "column 'a' cannot be used"),
        (lambda p: p["columns"][0].update(bounds=[0]), "'columns'"),
        (lambda p: p["columns"][0].update(bounds=[0, 10**400]), "column 'a' cannot be used"),
        (lambda p: p["columns"][0].update(bounds=["0", "1"]), "column 'a' cannot be used"),
        (lambda p: p["columns"][0].update(missing=None), "column 'a' cannot be used"),
        (lambda p: p["columns"][0].update(missing=[]), "column 'a' cannot be used"),
        (lambda p: p["columns"][0].update(integer=1), "'integer'"),
        (lambda p: p["columns"][1].update(categories=["x"]), "column 'b' cannot be used"),
        (lambda p: p["columns"][1].update(categories=["x", {}]), "column 'b' cannot be used"),
        (lambda p: p["columns"][1].update(missing={}), "column 'b' cannot be used"),
        (lambda p: p.update(locations=[]), "'locations'"),
        (lambda p: p.update(locations=[[0.5]] * 3), "'locations'"),
        (lambda p: p.update(locations=[[0.5, 0], [0.5]]), "'locations'"),
        (lambda p: p.update(locations=[[1.5, 0]]), "outside of its columns"),
        (lambda p: p.update(locations=[[0.5, 3]]), "outside of its columns"),
        (lambda p: p.update(locations=[[0.5, 0.5]]), "outside of its columns"),
        (lambda p: p.update(locations=[[0.5, 1.0]] * 257), "locations must be at most"),
        (lambda p: p.update(locations=[[0.5, 1.0]] * 4), "'mean' does not hold"),
    ],
)
def test_an_impossible_plan_is_refused(change, reason):
    with pytest.raises(DataError, match=reason):
        Share.from_json(redigested(edited(lambda d: change(d["plan"]))))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
@pytest.mark.parametrize("key", ["n", "sigma", "sigma_second"])
def test_numbers_that_are_not_finite(number, key):
    text = TEXT.replace(f'"{key}": {DOCUMENT[key]!r}', f'"{key}": {number}')
    assert text != TEXT
    with pytest.raises(DataError, match="not finite"):
        Share.from_json(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        '"privatest share"',
        "\ud800",
        "[" * 100_000,
        '{"n": ' + "9" * 10_000 + "}",
        TEXT.replace('"n": 30', '"n": 30, "n": 30'),
        TEXT[:-3],
        TEXT + "x",
        TEXT * 2,
    ],
)
def test_what_is_no_share_at_all(text):
    with pytest.raises(DataError):
        Share.from_json(text)


def test_bytes_that_are_not_text():
    for data in (b"\xff\xfe\x00", TEXT.encode("utf-16"), b"\x00" * 10):
        with pytest.raises(DataError, match="not a complete JSON document of a privatest share"):
            Share.from_json(data)


@given(st.integers(0, len(TEXT) - 1), st.integers(0, 30), st.binary(max_size=12))
@settings(max_examples=300)
def test_corruption_is_refused_or_harmless(place, removed, added):
    data = TEXT.encode()
    check_corrupted(data[:place] + added + data[place + removed :])


@given(st.integers(0, len(TEXT) - 2))  # the last character is the end of the line
def test_truncation_is_refused(length):
    with pytest.raises(DataError):
        Share.from_json(TEXT[:length])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(st.sampled_from([*DOCUMENT, *(f"plan.{key}" for key in DOCUMENT["plan"])]), JSON)
@settings(max_examples=300)
def test_any_value_in_any_place(key, value):
    """Also for somebody who corrects digest and checksum: an error in words or a share."""

    def change(document: dict[str, Any]) -> None:
        target = document["plan"] if key.startswith("plan.") else document
        target[key.removeprefix("plan.")] = value

    document = edited(change)
    try:
        text = redigested(document) if key.startswith("plan.") else resealed(document)
    except ValueError:  # NaN has no fingerprint
        text = json.dumps(document)
    check_corrupted(text.encode("utf-8", "surrogatepass"), must_be_same=False)


def check_corrupted(data: bytes, *, must_be_same: bool = True) -> None:
    try:
        taken = Share.from_json(data)
    except DataError:
        return
    if must_be_same:  # a blank more or less
        assert taken.checksum == SHARE.checksum
    elif taken.plan.digest == PLAN.digest:
        assert 0 < compare(taken, OTHER, n_bootstrap=9).pvalue <= 1
    else:
        with pytest.raises(ParameterError, match="different plans"):
            compare(taken, OTHER)


@given(st.integers(0, 2000), st.integers(0, 10), st.binary(max_size=5))
def test_corrupted_plans(place, removed, added):
    data = PLAN.to_json().encode()
    place %= len(data)
    try:
        plan = SharePlan.from_json(data[:place] + added + data[place + removed :])
    except DataError:
        return
    assert plan.digest == PLAN.digest


def test_files_are_named(tmp_path):
    path = tmp_path / "a.json"
    with pytest.raises(DataError, match=r"share a\.json cannot be read: No such file"):
        Share.load(path)
    with pytest.raises(DataError, match=r"plan a\.json cannot be read"):
        SharePlan.load(path)
    with pytest.raises(DataError, match="cannot be read"):
        Share.load(tmp_path)
    with pytest.raises(DataError, match="not the name of a file"):
        Share.load("a\0b")
    path.write_text(TEXT[:100])
    with pytest.raises(DataError, match=r"a\.json is refused: it is not a complete JSON"):
        Share.load(path)
    path.write_text(PLAN.to_json())
    with pytest.raises(DataError, match=r"a\.json is refused: it is not a privatest share"):
        Share.load(path)
    path.write_text(TEXT)
    with pytest.raises(DataError, match=r"a\.json is refused: it is not a privatest plan"):
        SharePlan.load(path)
    for place in (tmp_path, tmp_path / "gone" / "a.json", "a\0b"):
        with pytest.raises(ParameterError, match="cannot be written"):
            SHARE.save(place)
