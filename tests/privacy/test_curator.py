"""What a curator says and keeps holds no value of the data, and failing tells nothing."""

from __future__ import annotations

import contextlib
import traceback
from pathlib import Path
from typing import Any

import pytest

from privatest.core.errors import DataError, PrivatestError
from privatest.curator import Curator, RequestFailed
from privatest.curator import curator as answering
from privatest.curator.admission import admit
from privatest.curator.answers import log_failure
from privatest.requests.prepare import prepare
from privatest.requests.request import Prepared, Request
from tests.curators import opened, request, table, write
from tests.privacy.harness import audit

CANARY = 73.46291058213646
# Whatever the scale it is printed in. Six digits are in the hashes of a ledger and in released
# numbers once in 1,000 runs of this file; twelve once in 1e9.
DIGITS = "734629105821"
VISITS = [CANARY] * 3 + [float(2 * i) for i in range(37)]
KINDS = [
    request("two-sample", "ks"),
    request("two-sample", "mmd", permutations=19),
    request("two-sample", "wasserstein", permutations=19, release="decision"),
    request("two-sample", "ks", where={"region": "north"}),
    request("two-sample", "mann-whitney", group="region", groups=["north", "rest"]),
    request("independence", "hsic", x=["visits"], y=["plan"], permutations=19),
    request("paired", "wilcoxon", before="age", after="visits"),
    request("fit", "distribution", column="visits", dist="uniform(0, 80)"),
]


def files_of(folder: Path) -> str:
    """All that a curator keeps, but for the data itself: ledger, log and state."""
    kept = [path for path in folder.iterdir() if path.name != "people.csv"]
    return "\n".join(path.read_bytes().decode("latin-1") for path in kept).replace(".", "")


@pytest.mark.parametrize("document", KINDS, ids=lambda d: f"{d['question']}-{d['method']}")
def test_no_value_is_in_an_answer_or_a_file(tmp_path, document, capfd, caplog):
    caplog.set_level(0)
    with opened(tmp_path, visits=VISITS) as curator:
        price = curator.price(document, analyst="ada")
        answer = curator.run(document, analyst="ada")
        again = curator.run(document, analyst="ada")
    printed = capfd.readouterr()
    said = [repr(price), repr(answer), repr(again), str(answer.result), caplog.text]
    texts = [*said, printed.out, printed.err, files_of(tmp_path)]
    assert not any(DIGITS in text.replace(".", "") for text in texts)
    assert (printed.out, printed.err, caplog.text) == ("", "", "")


def fails(*tables: Any, **_: object) -> None:
    """A fault that tries to tell: by its message, its notes, its cause and its variables."""
    secret = tables[-1].column("visits")[0].as_py()
    try:
        raise KeyError(secret)
    except KeyError as error:
        error.add_note(f"the row holds {secret}")
        raise type(f"Fault{0}", (ValueError,), {})(f"could not convert {secret}") from error


def test_no_value_is_in_a_failure(tmp_path, monkeypatch, capfd, caplog):
    caplog.set_level(0)
    with opened(tmp_path, visits=VISITS) as curator:
        monkeypatch.setattr(answering, "run_privately", fails)
        with pytest.raises(RequestFailed) as caught:
            curator.run(request(), analyst="ada")
    shown = "".join(traceback.format_exception(caught.value))
    printed = capfd.readouterr()
    texts = [str(caught.value), repr(caught.value), shown, caplog.text, printed.out, printed.err]
    assert not any(DIGITS in text.replace(".", "") for text in [*texts, files_of(tmp_path)])
    log = (tmp_path / "curator.log").read_text(encoding="utf-8")
    assert "Fault0 at " in log
    assert "caused by KeyError at test_curator.py:" in log
    assert log.count("\n") == 1
    # not even a debugger that walks along the exception meets the data
    frames = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    ours = [frame for frame in frames if frame.f_code.co_filename.endswith("curator.py")]
    assert len(ours) >= 2  # this test, and the curator
    for frame in ours:
        assert not any(isinstance(value, BaseException) for value in frame.f_locals.values())


def test_the_canary_would_be_seen(tmp_path, monkeypatch):
    """The search finds a value that a careless curator would keep."""
    with opened(tmp_path, visits=VISITS) as curator:
        assert DIGITS not in files_of(tmp_path)
        real = answering.run_privately
        leaking = type("Leaking", (), {})

        def leak(*arguments: Any) -> Any:
            result = real(*arguments)
            found = leaking()
            found.to_dict = lambda: result.to_dict() | {"first": CANARY}
            return found

        monkeypatch.setattr(answering, "run_privately", leak)
        with contextlib.suppress(PrivatestError):
            curator.run(request(), analyst="ada")
    assert DIGITS in files_of(tmp_path)


def test_data_errors_of_registration_hold_no_value(tmp_path):
    plans = ["basic"] * 39 + [f"canary{DIGITS}"]
    with Curator.open(write(tmp_path, plan=plans), create=True) as curator:
        with pytest.raises(DataError) as caught:
            curator.register("people")
        assert DIGITS not in "".join(traceback.format_exception(caught.value))
    assert DIGITS not in files_of(tmp_path)


def test_the_log_tells_places_only(tmp_path):
    def fail(value: float) -> None:
        raise ValueError(value)

    try:
        fail(CANARY)
    except ValueError as error:
        log_failure(tmp_path / "log", "7", error, dataset="people")
    text = (tmp_path / "log").read_text(encoding="utf-8")
    assert "id=7 dataset='people' ValueError at test_curator.py:" in text
    assert text.endswith(":fail\n")
    assert DIGITS not in text.replace(".", "")


# --- what is said before anything is paid -----------------------------------------------------

UNPAID = [
    request(where={"plan": "basic"}),
    request(membership="public"),
    request(epsilon=2),
    request("two-sample", "ks", group="region", groups=["north", "west"], where={"region": "west"}),
    request("two-sample", "mmd", bandwidths=[0]),
    request("fit", "family", column="plan", family="norm"),
]
OTHERS: list[dict[str, Any]] = [
    {"visits": [80.0] * 40},
    {"plan": ["basic"] * 40},
    {"visits": [0.0] * 40, "age": [120] * 40, "plan": ["plus"] * 40},
]


def said_for_free(folder: Path, **changes: Any) -> list[str]:
    said = []
    folder.mkdir()
    with opened(folder, **changes) as curator:
        for document in UNPAID:
            with pytest.raises(PrivatestError) as caught:
                curator.run(document, analyst="ada")
            said.append(str(caught.value))
        for document in KINDS:
            said.append(repr(curator.price(document, analyst="ada")))
        assert curator._ledger.totals("people").account.spent.events == 0
    return said


def test_what_is_free_is_the_same_for_all_data(tmp_path):
    first = said_for_free(tmp_path / "first")
    for index, changes in enumerate(OTHERS):
        assert said_for_free(tmp_path / str(index), **changes) == first


# --- an empty private group -------------------------------------------------------------------

ALONE = {"plan": ["plus"] + ["basic"] * 39}  # one person on a plan, who changes it
NOBODY = {"plan": ["basic"] * 40}
ASKED = request("two-sample", "kolmogorov", epsilon=1, permutations=19)
FAILED = -1.0


def released(run: Any) -> float:
    """What an analyst sees: the p-value, or that there is none."""
    try:
        return float(run().pvalue)
    except DataError:
        return FAILED


def test_an_empty_private_group_is_hidden(tmp_path):
    with opened(tmp_path) as curator:
        dataset = curator.config.datasets["people"]
    admitted = admit(Request.from_dict(ASKED), dataset)

    def mechanism(changes: dict[str, Any]) -> float:
        return released(lambda: answering.run_privately(admitted, table(**changes)))

    assert audit(mechanism, ALONE, NOBODY, runs=300) <= 1


def test_an_empty_private_group_is_hidden_in_each_column(tmp_path):
    """No column fails: the curator's own split is used for each of them."""
    with opened(tmp_path) as curator:
        dataset = curator.config.datasets["people"]
    asked = ASKED | {"columns": ["visits", "age"], "each_column": "holm"}
    admitted = admit(Request.from_dict(asked), dataset)
    result = answering.run_privately(admitted, table(**NOBODY))
    assert sorted(result.to_dict()["columns"]) == ["age", "visits"]


def test_refusing_an_empty_group_would_be_caught(tmp_path):
    with opened(tmp_path) as curator:
        dataset = curator.config.datasets["people"]
    prepared = prepare(Request.from_dict(ASKED), dataset.schema)

    def mechanism(changes: dict[str, Any]) -> float:
        rows = table(**changes).select(prepared.names)

        def answer() -> Any:
            if "plus" not in rows.column("plan").to_pylist():
                raise DataError("a group is empty.")
            return prepared.run(rows)

        return released(answer)

    assert audit(mechanism, ALONE, NOBODY, runs=100) > 1


def test_nothing_else_draws_on_the_rows(tmp_path, monkeypatch):
    """Between reservation and commit, the only thing computed from rows is the private test."""
    seen: list[Any] = []
    real = Prepared.run

    def watched(self: Prepared, *tables: Any, noise: Any) -> Any:
        seen.append((tables, noise))
        return real(self, *tables, noise=noise)

    monkeypatch.setattr(Prepared, "run", watched)
    with opened(tmp_path, visits=VISITS) as curator:
        curator.run(request(), analyst="ada")
    rehearsed, run = (tables[0].column("visits").to_pylist() for tables, _ in seen)
    assert CANARY not in rehearsed
    assert CANARY in run
    assert all(type(noise).__name__ == "SecureNoise" for _, noise in seen)
