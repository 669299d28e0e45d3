"""``privatest ledger verify``, ``backup`` and ``export``."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from privatest.accounting import Pure
from privatest.cli.spending import open_ledger
from privatest.core.privacy import Budget
from privatest.ledger import Ledger
from tests.e2e.command_line import refused

BOOK = ("--ledger", "book.db")


@pytest.fixture
def care(cli):
    """The ledger commands, on a ledger of three entries."""
    with open_ledger("book.db", create=True) as ledger:
        ledger.create_dataset("visits", Budget(1))
        ledger.commit(ledger.reserve("visits", Pure("0.1")), released={"answer": 1})
    return lambda *arguments: cli("ledger", *arguments, *BOOK)


def spend():
    with open_ledger("book.db") as ledger:
        ledger.commit(ledger.reserve("visits", Pure("0.1")), released={"answer": 2})


def mode(name: str) -> int:
    return stat.S_IMODE(Path(name).stat().st_mode)


def test_verify_prints_whole_hashes_and_takes_them_back(care):
    run = care("verify")
    assert "as it was written" in run.out
    assert "--save FILE" in run.out
    digits = run.out.split("last hash ")[1].split()[0]
    assert len(digits) == 64
    spend()
    for known in (digits, digits[:16], digits.upper()):
        assert (
            "Compared with earlier hashes: visits."
            in care("verify", "--head", f"visits={known}").out
        )
    for wrong, words in (
        (f"visits={'0' * 64}", "does not lead to the known head"),
        (f"lost={digits}", "'lost' is gone"),
        ("visits=12", "at least 16"),
        ("visits", "NAME=HASH"),
    ):
        refused(care("verify", "--head", wrong), words)


def test_saved_heads_find_an_older_copy(care):
    shutil.copy("book.db", "older.db")
    spend()
    assert care("verify", "--save", "heads.json").code == 0
    assert json.loads(Path("heads.json").read_text())["heads"]["visits"]["sequence"] == 5
    spend()
    document = json.loads(care("verify", "--heads", "heads.json", "--json").out)
    assert document["format"] == 1
    assert document["verified"]
    assert document["compared"] == ["visits"]
    shutil.copy("older.db", "book.db")
    assert care("verify").code == 0  # nobody can know
    kept = Path("heads.json").read_text()
    refused(care("verify", "--heads", "heads.json"), "cut or rewritten")
    refused(care("verify", "--save", "heads.json"), "cut or rewritten")  # compared before replaced
    assert Path("heads.json").read_text() == kept


def test_a_document_of_verify_serves_as_heads(care):
    Path("heads.json").write_text(care("verify", "--json").out)
    assert care("verify", "--heads", "heads.json").code == 0
    for nonsense in ("no JSON", "[]", '{"heads": {"visits": 1}}', '{"heads": {"visits": {}}}'):
        Path("bad.json").write_text(nonsense)
        refused(care("verify", "--heads", "bad.json"), "does not hold hashes")


def test_a_backup_has_what_is_only_in_the_log(care, cli):
    with Ledger.open("book.db") as ledger:  # in use: the log is not folded into the file
        ledger.commit(ledger.reserve("visits", Pure("0.2")), released={"answer": 2})
        assert "cp can lack them" in care("verify").err
        assert json.loads(care("verify", "--json").out)["log"] is True
        shutil.copy("book.db", "copied.db")
        run = care("backup", "backup.db")
    assert "5 entries copied to backup.db and verified" in run.out
    for name, spent in (("backup.db", "0.3"), ("copied.db", "0.1")):  # why cp is not enough
        with Ledger.open(name) as ledger:
            assert str(ledger.totals("visits").account.spent.epsilon) == spent
    refused(care("backup", "backup.db"), "exists already")
    assert json.loads(care("backup", "second.db", "--json").out)["entries"] == 5
    assert care("verify").err == ""


def test_what_a_ledger_writes_is_for_its_owner_alone(care):
    before = os.umask(0)
    try:
        with Ledger.open("book.db") as ledger:
            ledger.reserve("visits", Pure("0.1"))
            assert {mode(f"book.db{end}") for end in ("", "-wal", "-shm")} == {0o600}
        care("export", "all.jsonl")
        care("backup", "copy.db")
    finally:
        os.umask(before)
    assert mode("all.jsonl") == 0o600
    assert mode("copy.db") == 0o600


def test_export_to_a_file_and_to_standard_output(care):
    run = care("export", "all.jsonl")
    assert "3 entries written to all.jsonl" in run.out
    assert "it has answers" in run.out
    refused(care("export", "all.jsonl"), "export", "exists already")
    run = care("export", "-")
    assert not Path("-").exists()
    assert run.err == ""
    assert run.out == Path("all.jsonl").read_text(encoding="utf-8")
    assert [json.loads(line)["entry"]["sequence"] for line in run.out.splitlines()] == [1, 2, 3]
    refused(care("export", "-", "--json"), "--json")
    assert json.loads(care("export", "other.jsonl", "--json").out)["entries"] == 3
    refused(care("export", "no/folder.jsonl"), "cannot be written")


def test_heads_are_added_to_a_file_and_compared(care):
    signed = ("--append", "heads.log", "--key", "heads.key")
    assert "visits: 3 entries" in care("head").out
    assert care("head", *signed).code == 0
    shutil.copy("book.db", "older.db")
    spend()
    assert json.loads(care("head", *signed, "--json").out)["heads"]["visits"]["sequence"] == 5
    assert mode("heads.log") == mode("heads.key") == 0o600
    check = ("verify", "--heads", "heads.log", "--key", "heads.key")
    assert "Compared with earlier hashes: visits." in care(*check).out
    refused(care("verify", "--heads", "heads.log"), "right key")
    refused(care("head", "--key", "heads.key"), "--append")
    shutil.copy("older.db", "book.db")
    assert care(*check).code != 0
    refused(care("head", *signed), "rewritten")


def test_a_restore_goes_back_only_if_told(care):
    care("backup", "copy.db")
    spend()
    run = care("restore", "copy.db")
    refused(run, "--back-in-time")
    assert "epsilon 0.1" in run.err
    run = care("restore", "copy.db", "--back-in-time", "--reason", "a test")
    assert "2 entries are lost. What they cost stays spent: epsilon 0.1" in run.out
    assert "2 entries lost, epsilon 0.1 stays spent, a test" in care("history", "visits").out
    assert "epsilon 0.2 of 1" in care("show").out
    care("backup", "second.db")
    document = json.loads(care("restore", "second.db", "--json").out)
    assert document["lost"] == {}
    assert document["heads"]["visits"]["sequence"] == 4
    assert Path(document["kept"]).exists()


def test_budgets_change_with_a_reason(care):
    with open_ledger("book.db") as ledger:
        ledger.set_analyst("visits", "ada", Budget("0.5"))
    run = care("set", "visits", "--epsilon", "2", "--reason", "approved")
    assert "epsilon = 2" in run.out
    run = care("set", "visits", "--analyst", "ada", "--epsilon", "0.7")
    assert "ada on visits" in run.out
    assert "approved" in care("history", "visits").out
    refused(care("set", "visits", "--analyst", "bob", "--epsilon", "1"), "it has: ada")
    refused(care("set", "visits", "--epsilon", "0.05"), "at least what is already spent")
