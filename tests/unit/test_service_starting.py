"""``privatest serve`` on a bad day: a line that says what to do, before anything is begun."""

import os
import socket
from contextlib import closing

import pytest

from privatest.cli import main
from privatest.core.errors import ParameterError
from privatest.curator.config import CuratorConfig
from privatest.service.auth import lock_curator, session_key
from tests.curators import opened


@pytest.fixture
def folder(tmp_path, monkeypatch):
    opened(tmp_path).close()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_port_in_use_is_named(folder, capsys):
    with closing(socket.socket()) as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert main(["serve", "--port", str(port)]) == 2
    said = capsys.readouterr().err
    assert f"port {port} of 127.0.0.1 cannot be used" in said
    assert "--port" in said
    assert "Serving" not in said


def test_a_port_that_is_none_is_refused(folder, capsys):
    assert main(["serve", "--port", "99999"]) == 2
    assert "--port" in capsys.readouterr().err


def test_a_certificate_that_cannot_be_used_is_named(folder, capsys):
    (folder / "junk.pem").write_text("junk")
    assert main(["serve", "--certificate", "gone.pem", "--key", "junk.pem"]) == 2
    assert "certificate cannot be read" in capsys.readouterr().err
    assert main(["serve", "--certificate", "junk.pem", "--key", "junk.pem"]) == 2
    assert "must be a pair in PEM" in capsys.readouterr().err


def test_a_ledger_that_is_gone_is_said_in_a_line(folder, capsys):
    (folder / "ledger.db").unlink()
    assert main(["serve", "--port", "9"]) == 2
    said = capsys.readouterr().err
    assert "The ledger is gone" in said
    assert "Traceback" not in said


def test_one_curator_is_served_once(folder):
    session_key(CuratorConfig.load(folder / "curator.toml"))
    held = lock_curator(folder / "curator.toml")
    with pytest.raises(ParameterError, match="served already"):
        lock_curator(folder / "curator.toml")
    os.close(held)
    os.close(lock_curator(folder / "curator.toml"))
