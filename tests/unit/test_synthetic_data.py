"""SyntheticData: estimates, other forms, and files."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privatest.core.documents import digest
from privatest.core.errors import DataError, ParameterError
from privatest.core.privacy import Budget
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.noise import SimulatedNoise
from privatest.numerics.kernels import Kernel
from privatest.synthetic import Estimate, Facts, SyntheticData, release, storage
from privatest.synthetic.answers import Weighting

SCHEMA = Schema(
    {
        "visits": NumericColumn(0, 20, integer=True),
        "plan": CategoricalColumn(("basic", "plus")),
        "weight": NumericColumn(0, 100),  # the name that tables use for weights
    }
)
FACTS = Facts(
    n=1000,
    spent=Budget("0.1", "1e-6"),
    method="subspace (gaussian kernel)",
    kernel=Kernel("gaussian", 0.3),
    schema=SCHEMA,
)


def small(weights=(0.5, 0.3, 0.2), facts=FACTS):
    weights, moved = np.array(weights), np.array([0.1, -0.1, 0])
    return SyntheticData(
        columns={
            "visits": np.array([2, 10, 4]),
            "plan": np.array(["basic", "plus", "plus"], dtype=object),
            "weight": np.array([50.0, 70.0, 90.0]),
        },
        weights=weights,
        draws=np.column_stack([weights + moved, weights - moved]),
        facts=facts,
    )


def real(**options):
    rng = np.random.default_rng(0)
    table = {
        "visits": rng.poisson(3, size=1000),
        "plan": rng.choice(["basic", "plus"], size=1000),
        "weight": rng.uniform(40, 90, size=1000),
    }
    settings: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "n_points": 60, "method": "subspace"}
    settings |= options
    return release(table, bounds=SCHEMA, noise=SimulatedNoise(0), rng=0, **settings)


# --- estimates -------------------------------------------------------------------------------


def test_means_and_their_errors_by_hand():
    synthetic = small()
    mean = synthetic.mean("visits")
    assert mean.value == pytest.approx(0.5 * 2 + 0.3 * 10 + 0.2 * 4)
    assert mean.error == pytest.approx(0.8)  # both draws are 0.1 (2 - 10) away
    assert float(mean) == mean.value
    assert str(mean) == "4.80 ± 0.80"
    assert synthetic.mean(lambda t: t["visits"] ** 2).value == pytest.approx(35.2)
    assert synthetic.mean(lambda t: 3).value == pytest.approx(3)


def test_means_are_divided_by_the_sum_of_the_weights():
    synthetic = small((1.0, 0.6, 0.4))
    assert synthetic.mean("visits").value == pytest.approx(4.8)


def test_probabilities():
    synthetic = small()
    assert synthetic.probability("visits > 3").value == pytest.approx(0.5)
    estimate = synthetic.probability("plan == 'plus' and weight < 80")
    assert estimate.value == pytest.approx(0.3)
    assert estimate.error == pytest.approx(0.1)
    assert synthetic.probability(lambda t: t["weight"] > 60).value == pytest.approx(0.5)
    assert synthetic.probability("visits < 0").value == 0


def test_quantiles():
    synthetic = small()
    for q, value in ((0, 2), (0.5, 2), (0.6, 4), (0.7, 4), (0.71, 10), (1, 10)):
        assert synthetic.quantile("visits", q).value == value
    assert synthetic.quantile("visits", 0.55).error > 0


def test_weights_that_cancel_are_refused():
    with pytest.raises(DataError, match="more noise than signal"):
        small((0.5, -0.5, 0.01)).mean("visits")


def test_draws_that_cancel_are_not():
    """Only the weights themselves decide: a draw's own sum is never divided by."""
    one = small()
    moved = one.weights + np.array([0.1, -0.1, 0])
    draws = np.column_stack([one.weights * 0, -one.weights, moved])
    wild = SyntheticData(one.columns, one.weights, draws, one.facts)
    for estimate in (
        wild.mean("visits"),
        wild.probability("visits > 3"),
        wild.quantile("visits", 0.6),
    ):
        assert math.isfinite(estimate.error)
    # the first two draws change the sum alone, not the mean
    assert wild.mean("visits").error == pytest.approx(0.8 / math.sqrt(3))


def test_releases_of_little_data_answer():
    """80 rows, epsilon 1, 50 points: answered whenever the weights do not cancel."""
    rng = np.random.default_rng(0)
    answered = 0
    for seed in range(40):
        noise = SimulatedNoise(seed)
        rows = rng.beta(2, 5, size=(80, 2))
        made = release(rows, bounds=(0, 1), epsilon=1, delta=1e-6, n_points=50, noise=noise, rng=0)
        if made.weights.sum() >= 0.1:
            assert made.mean("x1").error > 0
            answered += 1
    assert answered >= 35


# --- how well the rows stand for the data ----------------------------------------------------


def test_a_misfit_is_told_by_hand():
    """The signed weights say 6.8, bars of noise are 0.8: of the 2 between them 0.4 is left."""
    one = small()
    free = small((0.25, 0.55, 0.2))
    fitted = replace(one, before=Weighting(free.weights, free.draws))
    mean = fitted.mean("visits")
    assert mean.value == pytest.approx(4.8)
    assert mean.misfit == pytest.approx(2 - 2 * 0.8)
    assert mean.error == pytest.approx(math.hypot(0.8, 0.4))
    assert not mean.poor
    assert str(mean) == "4.80 ± 0.89"
    assert one.mean("visits").misfit == 0
    assert free.mean("visits").misfit == 0


def test_weights_that_do_not_add_up_to_one_miss_something():
    """A fifth of the constant 1 is missing: as much may be of the range of visits, 8."""
    synthetic = small((0.4, 0.24, 0.16))
    mean = synthetic.mean("visits")
    assert mean.value == pytest.approx(4.8)
    assert mean.misfit == pytest.approx(0.2 * 8)
    assert synthetic.probability("visits < 0").error == pytest.approx(0.2)  # where no row is
    quantile = synthetic.quantile("visits", 0.45)
    assert quantile.value == 2
    assert quantile.misfit == 2  # 0.65 of the weight reaches 4


def test_bars_are_long_where_the_points_stand_badly():
    """All rows in one corner of six columns: every mean is many bars of noise away."""
    names = [f"c{index}" for index in range(6)]
    rows = np.random.default_rng(0).uniform(0, 3, size=(4000, 6))
    for weights in ("signed", "nonnegative", "bounded"):
        made = release(
            dict(zip(names, rows.T, strict=True)),
            bounds=Schema.from_bounds(dict.fromkeys(names, (0, 100))),
            method="subspace",
            epsilon=10,
            delta=1e-6,
            n_points=40,
            weights=weights,
            noise=SimulatedNoise(0),
            rng=0,
        )
        for name in names:
            for mean in (made.mean(name), made.nonnegative().mean(name)):
                assert math.isnan(mean.error)
                assert "finer than its points" in mean.reason
                assert "(no bar; between " in str(mean)
                assert mean.limits is not None
                assert mean.limits[0] <= 1.5 <= mean.limits[1]


def test_good_releases_have_bars():
    signed = real(epsilon=0.3)
    for made in (signed, signed.nonnegative()):
        for name in ("visits", "weight"):
            mean = made.mean(name)
            assert mean.misfit < 0.9 * mean.error
            assert mean.limits is None
            assert not mean.reason
            assert not mean.poor
            assert mean.total > mean.error > mean.sampling > 0


def test_distances_know_the_misfit():
    signed = small((0.8, 0.4, -0.2))
    signed = SyntheticData(signed.columns, signed.weights, signed.weights[:, None], signed.facts)
    fitted = signed.nonnegative()
    public = {"visits": [2, 10], "plan": ["basic", "plus"], "weight": [50.0, 70.0]}
    moved = abs(fitted.mmd(public).value - signed.mmd(public).value)
    assert 0 < moved <= fitted.mmd(public).misfit + 1e-12


def test_quantiles_of_signed_weights_are_not_the_first_crossing():
    """Shares 0.6, 0.1, 1: the first crossing of a half is 0, the nearest rising curve's is 2."""
    facts = replace(FACTS, kernel=None, schema=None)
    weights = np.array([0.6, -0.5, 0.9])
    made = SyntheticData({"x": np.array([0, 1, 2])}, weights, weights[:, None], facts)
    assert made.quantile("x", 0.5).value == 2
    assert made.quantile("x", 0.3).value == 0


def test_medians_of_signed_weights_are_not_low():
    """Of 12 releases all gave 0.53 to 0.57; the first crossing gave 0.19, the truth is 0.545."""
    rng = np.random.default_rng(1)
    rows = np.where(rng.random((3000, 1)) < 0.6, 1.0, 0.1) * rng.beta(8, 4, size=(3000, 5))
    found = []
    for seed in range(3):
        noise = SimulatedNoise(seed)
        made = release(
            rows, bounds=(0, 1), epsilon=1, delta=1e-6, n_points=300, noise=noise, method="subspace"
        )
        found.append(made.quantile("x1", 0.5).value)
    assert np.mean(found) == pytest.approx(np.median(rows[:, 0]), abs=0.15)


def test_the_bar_of_a_quantile_covers_the_gap_to_the_next_row():
    one = small()
    still = SyntheticData(one.columns, one.weights, one.weights[:, None], one.facts)
    assert still.quantile("weight", 0.6).error == pytest.approx(20 / math.sqrt(12))
    assert still.quantile("visits", 0.1).error == pytest.approx(1 / math.sqrt(12))  # 3 is between


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.mean("visit"), "no column 'visit'; the columns are: visits, plan, weight"),
        (lambda s: s.mean("plan"), "column 'plan' must give one number"),
        (lambda s: s.mean(lambda t: [1, 2]), "the function must give one number"),
        (lambda s: s.mean(lambda t: t["visits"] * math.inf), "finite"),
        (lambda s: s.probability("height > 3"), "no column 'height'"),
        (lambda s: s.probability(3), "region must be a short condition"),
        (lambda s: s.quantile("height", 0.5), "no column"),
        (lambda s: s.quantile("visits", 1.5), "q must be"),
        (lambda s: s.quantile("visits", -0.5), "q must be"),
        (lambda s: s.sample(0), "n must be"),
        (lambda s: s.transform(lambda t: [1, 2]), "a value for each synthetic row"),
        (lambda s: s.transform(lambda t: {}), "a value for each synthetic row"),
    ],
)
def test_bad_questions(call, message):
    with pytest.raises(ParameterError, match=message):
        call(small())


def test_mmd_to_public_rows():
    synthetic = real()
    rng = np.random.default_rng(9)
    public = {
        "visits": rng.poisson(3, size=800),
        "plan": rng.choice(["basic", "plus"], size=800),
        "weight": rng.uniform(40, 90, size=800),
    }
    near = synthetic.mmd(public)
    far = synthetic.mmd(public | {"visits": public["visits"] + 10})
    assert near.value < 0.2 < far.value
    assert 0 < near.error < 0.2
    with pytest.raises(DataError):
        synthetic.mmd({"visits": [1]})
    shares: list[float] = []
    synthetic.mmd(public, progress=shares.append)
    assert shares == [1]


# --- other forms -----------------------------------------------------------------------------


def test_nonnegative_weights():
    signed = real()
    assert signed.weights.min() < 0
    plain = signed.nonnegative()
    assert plain.weights.min() >= 0
    assert plain.weights.sum() == pytest.approx(1)
    assert plain.nonnegative() is plain
    assert 0 <= plain.probability("visits > 3").value <= 1


def test_transform_keeps_the_weights():
    synthetic = small()
    doubled = synthetic.transform(lambda t: {"double": 2 * t["visits"]})
    assert doubled.mean("double").value == pytest.approx(2 * synthetic.mean("visits").value)
    assert list(doubled.columns) == ["double"]
    array = synthetic.transform(lambda t: np.column_stack([t["visits"], t["weight"]]))
    assert list(array.columns) == ["x1", "x2"]
    with pytest.raises(ParameterError, match="have no kernel"):
        doubled.mmd([[1.0]])
    with pytest.raises(ParameterError, match="no kernel"):
        small((0.8, 0.4, -0.2)).transform(lambda t: t["visits"]).sample(3)
    assert doubled.sample(10, rng=0).num_rows == 10


def test_samples_follow_the_weights():
    table = small().sample(1000, rng=3)
    assert isinstance(table, pa.Table)
    counts = np.bincount(table.column("visits").to_numpy(), minlength=11)
    assert counts[[2, 10, 4]].tolist() == pytest.approx([500, 300, 200], abs=1)
    assert table.column("visits").to_pylist() != sorted(table.column("visits").to_pylist())
    assert table.schema.names == ["visits", "plan", "weight"]
    again = small().sample(1000, rng=3)
    assert again.equals(table)


def test_tables_have_the_weights_last():
    synthetic = small()
    assert synthetic.weight_name == "weight_"
    frame, table = synthetic.to_pandas(), synthetic.to_arrow()
    assert list(frame.columns) == table.schema.names == ["visits", "plan", "weight", "weight_"]
    assert frame["weight_"].tolist() == table.column("weight_").to_pylist() == [0.5, 0.3, 0.2]
    assert frame["visits"].tolist() == [2, 10, 4]


def test_points_are_an_array():
    assert small().points.dtype == object
    numbers = small().transform(lambda t: {"a": t["visits"], "b": t["weight"]})
    assert numbers.points.tolist() == [[2, 50], [10, 70], [4, 90]]


def test_nothing_can_be_changed():
    synthetic = small()
    with pytest.raises(ValueError, match="read-only"):
        synthetic.weights[0] = 1
    with pytest.raises(TypeError):
        synthetic.columns["visits"] = 1
    copy = pickle.loads(pickle.dumps(synthetic))
    assert np.array_equal(copy.weights, synthetic.weights)


def test_parts_have_to_fit():
    with pytest.raises(DataError, match="the same length"):
        small((0.5, 0.5, math.nan))
    with pytest.raises(DataError, match="the same length"):
        SyntheticData({"a": np.arange(2)}, np.ones(3), np.ones((3, 1)), FACTS)
    with pytest.raises(DataError, match="the same length"):
        replace(small(), before=Weighting(np.ones(2), np.ones((2, 1))))


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate(123.456, 0.0123), "123.456 ± 0.012"),
        (Estimate(123.456, 12.3), "123 ± 12"),
        (Estimate(0.5, 0.0), "0.5 ± 0"),
        (Estimate(0.5, math.nan), "0.5 (no bar)"),
    ],
)
def test_estimates_are_printed_to_the_digits_that_matter(estimate, text):
    assert str(estimate) == text


# --- files -----------------------------------------------------------------------------------


def same(first, second):
    assert list(first.columns) == list(second.columns)
    for name, values in first.columns.items():
        assert values.tolist() == second.columns[name].tolist()
        assert values.dtype == second.columns[name].dtype
    assert np.array_equal(first.weights, second.weights)
    assert np.array_equal(first.draws, second.draws)
    assert first.facts == second.facts
    assert (first.before is None) == (second.before is None)
    if first.before is not None:
        assert np.array_equal(first.before.weights, second.before.weights)
        assert np.array_equal(first.before.draws, second.before.draws)


@pytest.mark.parametrize(
    "make",
    [small, real, lambda: real().nonnegative(), lambda: real(weights="equal")],
    ids=["small", "real", "nonnegative", "equal"],
)
def test_what_is_saved_is_loaded(make, tmp_path):
    synthetic = make()
    synthetic.save(tmp_path / "a.parquet")
    same(SyntheticData.load(tmp_path / "a.parquet"), synthetic)
    synthetic.save(str(tmp_path / "a.parquet"))  # again, over the first
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


def test_rows_without_a_schema_and_transformed_ones_are_saved_too(tmp_path):
    rows = np.random.default_rng(0).normal(size=(300, 2))
    raw = release(rows, public_points=rows[:20], bandwidth=1, epsilon=1, delta=1e-6)
    for synthetic in (raw, small().transform(lambda t: t["visits"])):
        synthetic.save(tmp_path / "b.parquet")
        same(SyntheticData.load(tmp_path / "b.parquet"), synthetic)


def test_the_file_holds_the_public_facts(tmp_path):
    small().save(tmp_path / "c.parquet")
    metadata = pq.read_schema(tmp_path / "c.parquet").metadata
    facts = json.loads(json.loads(metadata[b"privatest"])["facts"])
    assert facts["epsilon"] == "0.1"
    assert facts["delta"] == "0.000001"
    assert facts["n"] == 1000
    assert facts["version"] == 2
    assert facts["kernel"] == {"family": "gaussian", "bandwidth": 0.3, "mismatch": None}
    assert Schema.from_text(facts["schema"]) == SCHEMA


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "d.parquet"
    small().save(path)
    whole = path.read_bytes()
    rng, refused = np.random.default_rng(0), 0
    for place in [0, 4, len(whole) - 1, *rng.integers(len(whole), size=60)]:
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        try:
            loaded = SyntheticData.load(path)
        except DataError:
            refused += 1
        else:
            same(loaded, small())  # the byte holds nothing of the release
    assert refused > 30
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"d\.parquet"):
            SyntheticData.load(path)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "e.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(DataError, match="not a release"):
        SyntheticData.load(path)
    with pytest.raises(DataError, match="no such file"):
        SyntheticData.load(tmp_path / "nothing.parquet")
    path.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="damaged, or not a Parquet file as `release`"):
        SyntheticData.load(path)


def test_changed_facts_are_refused(tmp_path):
    """Whoever turns epsilon = 0.1 into 0.01, or a weight, breaks the seal."""
    path = tmp_path / "f.parquet"
    small().save(path)
    table = pq.read_table(path)
    box = json.loads(table.schema.metadata[b"privatest"])
    for key, value in (("facts", box["facts"].replace('"0.1"', '"0.01"')), ("seal", "")):
        changed = table.replace_schema_metadata({b"privatest": json.dumps(box | {key: value})})
        pq.write_table(changed, path)
        with pytest.raises(DataError, match="were changed"):
            SyntheticData.load(path)
    other = table.set_column(3, "weight_", pa.array([0.1, 0.2, 0.7]))
    pq.write_table(other.replace_schema_metadata(table.schema.metadata), path)
    with pytest.raises(DataError, match="were changed"):
        SyntheticData.load(path)


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(ParameterError, match="path cannot be written"):
        small().save(tmp_path / "nowhere" / "a.parquet")


def test_html_form():
    columns = {"<plan>\x1b": np.array(["<i>a</i>", "b\x1b[2J", "c"]), "visits": np.arange(3.0)}
    made = SyntheticData(columns, np.full(3, 1 / 3), np.full((3, 2), 1 / 3), FACTS)
    text = made._repr_html_()
    assert "<caption>3 synthetic rows for " in text
    assert "<th>1</th><td>&lt;i&gt;a&lt;/i&gt;</td><td>0</td><td>0.333333</td>" in text
    assert "<td>&lt;plan&gt;\\x1b</td><td>visits</td><td>weight</td>" in text
    assert "\x1b" not in text + str(made) + repr(made)
    assert "Privacy spent" in text
    assert small()._repr_html_().count("<tr>") == 4


@pytest.mark.parametrize("signed", [False, True])
def test_files_of_the_first_version_are_read(signed, tmp_path):
    """They have another digest, no coefficients, and signed weights without a word."""
    made = small()
    if signed:
        made = replace(made, before=Weighting(made.weights, made.draws))
    made.save(tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet")
    facts = json.loads(json.loads(table.schema.metadata[b"privatest"])["facts"])
    old = {key: value for key, value in facts.items() if key not in ("coefficients", "signed")}
    text = json.dumps(old | {"version": 1, "rows": storage._first_digest(table)}, sort_keys=True)
    sealed = json.dumps({"facts": text, "seal": digest(text)})
    pq.write_table(table.replace_schema_metadata({b"privatest": sealed}), tmp_path / "b.parquet")
    same(SyntheticData.load(tmp_path / "b.parquet"), made)


def test_a_file_keeps_what_every_question_needs(tmp_path, monkeypatch):
    """Non-negative weights are not looked for again, and answers are the same."""
    made = real()
    made.save(tmp_path / "a.parquet")
    loaded = SyntheticData.load(tmp_path / "a.parquet")

    def looked(*_: object) -> None:
        raise AssertionError("weights were looked for")

    monkeypatch.setattr("privatest.synthetic.data.nonnegative_weights", looked)
    for question in (
        lambda r: r.mean("visits"),
        lambda r: r.probability("plan == 'plus'"),
        lambda r: r.quantile("weight", 0.5),
    ):
        assert question(loaded).to_dict() == question(made).to_dict()
