"""Fixtures of the command line."""

from __future__ import annotations

import pytest

from privatest.cli import main
from privatest.noise import SecureNoise
from tests.e2e.command_line import CANARY, Cli, Run


@pytest.fixture
def cli(capsys, tmp_path, monkeypatch) -> Cli:
    """Run the command line in an empty folder, and look for the canary."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PRIVATEST_DEBUG", raising=False)

    def run(*arguments: str) -> Run:
        code = main(arguments)
        captured = capsys.readouterr()
        assert str(CANARY) not in captured.out + captured.err
        return Run(code, captured.out, captured.err)

    return run


@pytest.fixture
def no_noise(monkeypatch) -> None:
    """Let every draw of secret randomness fail."""

    def fail(*_: object) -> None:
        raise AssertionError(f"noise was drawn for {CANARY}")

    for name in ("laplace", "gaussian", "discrete_laplace", "below", "permutation"):
        monkeypatch.setattr(SecureNoise, name, fail)
