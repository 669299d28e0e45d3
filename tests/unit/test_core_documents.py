"""Canonical JSON, digests and files: what was written and hashed stays the same for ever.

The digests here were computed when the formats were made. Shares, plans and ledgers in the world
hold such digests: a test that fails here must not be mended by storing a new number.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys

import numpy as np
import pyarrow as pa
import pytest

import privatest as pt
from privatest.core.documents import canonical, fingerprint, replacing, write_text
from privatest.ledger import state
from privatest.methods import shares as document
from privatest.synthetic import storage

VALUE = {"b": [1, 0.1, -0.0, 1e-300], "a": {"ü": 'ß \n"', "z": None, "y": True}, "n": 2**70}


def test_stored_digests_of_documents():
    assert canonical(VALUE) == (
        '{"a":{"y":true,"z":null,"\\u00fc":"\\u00df \\n\\""},"b":[1,0.1,-0.0,1e-300],'
        '"n":1180591620717411303424}'
    )
    stored = "bb458bf7b4ac4d17659c2bd35a28f12e96af16a02259d5036b93be4bf48c1df3"
    assert fingerprint(VALUE) == stored
    sealed = hashlib.sha256(document.seal("privatest share", VALUE).encode()).hexdigest()
    assert sealed == "073d0f4f94912dd74a8f0b088953c2a99bd516423f69803486903c93d68c4410"


def test_stored_digest_of_a_ledger_entry():
    found = state.digest(state.GENESIS, state.canonical(VALUE))
    assert found == "678bfe561eab95f2e02c2d18c17991f758fc761af54615458aa0d0c7f5015d5a"


def test_stored_digest_of_a_plan():
    plan = pt.plan_share(
        {"age": (0, 100), "income": (0.0, 1e5)},
        locations=[[30.0, 1e4], [60.0, 5e4]],
        bandwidth=0.5,
        epsilon="0.1",
        delta="1e-6",
    )
    assert plan.digest == "570e1200cb615acad39324b9916b213c9afae053be9f38d4de10cc5ce1f14d89"


def test_stored_digest_of_a_release_of_version_1():
    table = pa.table({"age": [0.1, 2.0], "smoker": ["no", "ß"], "weight": [1, None]})
    stored = "f099cf4111806699a1d1598aeea154315221fc0d5e43c57b0701f4304f60f2d6"
    assert storage._first_digest(table) == stored


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [1e999]])
def test_what_is_not_finite_has_no_canonical_form(value):
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical(value)


# --- files -----------------------------------------------------------------------------------


def test_a_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "share.json"
    write_text(path, "old")

    def interrupted():
        with replacing(path) as draft:
            draft.write_text("half a sha")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    write_text(path, "ß\n")
    assert path.read_bytes() == "ß\n".encode()
    assert os.listdir(tmp_path) == ["share.json"]


def test_two_writers_do_not_share_a_draft(tmp_path):
    with replacing(tmp_path / "a") as first, replacing(tmp_path / "a") as second:
        assert first != second
        first.write_text("first")
        second.write_text("second")
    assert (tmp_path / "a").read_text() == "first"  # the outer one ends last


@pytest.mark.skipif(sys.platform == "win32", reason="modes of files are those of POSIX")
def test_a_private_file_is_never_open_to_others(tmp_path):
    path = tmp_path / "state.json"
    with replacing(path, private=True) as draft:
        assert stat.S_IMODE(draft.stat().st_mode) == 0o600
        draft.write_text("{}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    previous = os.umask(0o022)
    try:
        write_text(tmp_path / "public.json", "{}")
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "public.json").stat().st_mode) == 0o644


def test_a_directory_is_not_replaced(tmp_path):
    with pytest.raises(IsADirectoryError):
        write_text(tmp_path, "text")
    assert list(tmp_path.iterdir()) == []


# --- results ---------------------------------------------------------------------------------


def test_digests_read_what_was_given():
    assert fingerprint({"a": [1, 2]}) != fingerprint({"a": [2, 1]})
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    assert fingerprint(np.arange(2).tolist()) == fingerprint([0, 1])
