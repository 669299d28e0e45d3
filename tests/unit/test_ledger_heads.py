"""Heads that are kept elsewhere: who rewrites a ledger wholly is found by them."""

from __future__ import annotations

import json
import stat

import pytest

from privatest.accounting import Pure
from privatest.core.errors import LedgerError, ParameterError
from privatest.core.privacy import Budget
from privatest.ledger import Head, Ledger
from privatest.ledger.verify import add_heads, key_from, read_heads

HEADS = ({"d": Head(1, "a" * 64)}, {"d": Head(3, "b" * 64)}, {"d": Head(3, "b" * 64)})


@pytest.fixture
def log(tmp_path):
    key = key_from(tmp_path / "key", create=True)
    for heads in HEADS:
        add_heads(tmp_path / "heads.log", heads, key)
    return tmp_path / "heads.log", key


def test_the_last_heads_come_back(log):
    file, key = log
    assert read_heads(file, key) == HEADS[-1]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.with_name("key").stat().st_mode) == 0o600
    assert key_from(file.with_name("key"), create=True) == key  # it is not made anew


def test_no_line_can_be_changed_without_the_key(log):
    file, key = log
    lines = file.read_text().splitlines()
    changed = lines[1].replace("b" * 64, "c" * 64)
    for wrong in (
        [lines[0], changed, lines[2]],
        [lines[1], lines[2]],  # the first is gone
        [lines[0], lines[2]],
        [lines[0], lines[2], lines[1]],
        [lines[0], "no JSON"],
        [lines[0], json.dumps({"body": 1, "sign": ""})],
    ):
        file.write_text("\n".join(wrong))
        with pytest.raises(LedgerError, match="changed or damaged"):
            read_heads(file, key)
        with pytest.raises(LedgerError):
            add_heads(file, HEADS[-1], key)
    file.write_text("\n".join(lines) + "\n")
    for other in (None, "k" * 64):
        with pytest.raises(LedgerError, match="right key"):
            read_heads(file, other)


def test_a_chain_does_not_become_shorter(log):
    file, key = log
    for heads in ({"d": Head(2, "c" * 64)}, {"e": Head(9, "c" * 64)}):
        copy = file.with_name("copy")
        copy.write_bytes(file.read_bytes())
        add_heads(copy, heads, key)
        with pytest.raises(LedgerError, match="shorter"):
            read_heads(copy, key)


def test_a_short_key_is_refused(tmp_path):
    (tmp_path / "key").write_text("secret")
    with pytest.raises(ParameterError, match="32 characters"):
        key_from(tmp_path / "key")
    with pytest.raises(ParameterError, match="cannot be read"):
        key_from(tmp_path / "no")


def test_a_ledger_that_was_written_anew_is_found(tmp_path):
    def made(name, cost):
        with Ledger.open(tmp_path / name, create=True) as ledger:
            ledger.create_dataset("d", Budget(1))
            for _ in range(3):
                ledger.commit(ledger.reserve("d", Pure(cost)))
            return ledger.verify()

    add_heads(tmp_path / "heads.log", made("true.db", "0.3"), None)
    made("false.db", "0.01")  # all of its own hashes fit
    with (
        Ledger.open(tmp_path / "false.db") as ledger,
        pytest.raises(LedgerError, match="rewritten"),
    ):
        ledger.verify(read_heads(tmp_path / "heads.log", None))
