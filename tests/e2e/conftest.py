"""Fixtures of the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from privatest.cli import main
from privatest.cli.spending import open_ledger
from privatest.core.privacy import Budget
from privatest.noise import SecureNoise
from privatest.requests import rehearsal
from tests.e2e.command_line import CANARY, Cli, Run

DATA_COMMANDS = ("two-sample", "independence", "paired", "fit", "mean", "release", "share")


@pytest.fixture
def cli(capsys, tmp_path, tmp_path_factory, monkeypatch) -> Cli:
    """Run the command line in an empty folder, and look for the canary.

    Data sets have plenty of budget in a ledger of the test's own, unless it names another.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PRIVATEST_DEBUG", raising=False)
    monkeypatch.setenv("PRIVATEST_LEDGER", str(tmp_path_factory.mktemp("state") / "ledger.db"))

    def run(*arguments: str) -> Run:
        if not {"--ledger", "--no-ledger", "--dataset"} & set(arguments):
            _give_budget(arguments)
        code = main(arguments)
        captured = capsys.readouterr()
        assert str(CANARY) not in captured.out + captured.err
        return Run(code, captured.out, captured.err)

    return run


def _give_budget(arguments: Sequence[str]) -> None:
    """Enter the file of a data command in the ledger, as its user would once."""
    files = [text for text in arguments[1:3] if Path(text).exists()]
    if arguments and arguments[0] in DATA_COMMANDS:
        with open_ledger(None, create=True) as ledger:
            for file in files:
                name = Path(file).name.partition(".")[0]
                ledger.create_dataset(name, Budget(10**9, "0.99"), exist_ok=True)


@pytest.fixture
def no_noise(monkeypatch) -> None:
    """Let every draw of secret randomness fail, but in rehearsals: their rows are made up."""
    rehearsing: list[bool] = []
    real = rehearsal.rehearse_call

    def rehearse(*arguments: Any) -> None:
        rehearsing.append(True)
        try:
            real(*arguments)
        finally:
            rehearsing.pop()

    def failing(draw: Callable[..., Any]) -> Callable[..., Any]:
        def fail(*arguments: Any, **options: Any) -> Any:
            if rehearsing:
                return draw(*arguments, **options)
            raise AssertionError(f"noise was drawn for {CANARY}")

        return fail

    monkeypatch.setattr(rehearsal, "rehearse_call", rehearse)
    draws = ("laplace", "gaussian", "discrete_laplace", "discrete_laplaces", "below", "permutation")
    for name in draws:
        monkeypatch.setattr(SecureNoise, name, failing(getattr(SecureNoise, name)))
