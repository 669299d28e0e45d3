"""Pictures of differences and means, and the command ``privatest mean``."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import typer

from privatest.cli.questions import command as command_of
from privatest.core.errors import ParameterError
from privatest.data.schema import Schema
from privatest.display.plots import plot_differences, plot_means
from privatest.methods.means import hotelling_1samp, hotelling_test, private_mean, ttest_ind
from privatest.noise import SimulatedNoise

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(0, 6, size=(300, 2)), RNG.uniform([0, 4], [6, 10], size=(300, 2))
SCHEMA = Schema.from_bounds({"age": (0, 10), "visits": (0, 10)})


def test_differences():
    options: dict[str, Any] = {
        "epsilon": 5,
        "n_bootstrap": 99,
        "rng": 0,
        "noise": SimulatedNoise(0),
    }
    outcome = hotelling_test(
        dict(zip(SCHEMA.columns, X.T, strict=True)),
        dict(zip(SCHEMA.columns, Y.T, strict=True)),
        bounds=SCHEMA,
        **options,
    )
    axes = plot_differences(outcome)
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels[0].startswith("age: ")
    assert labels[1].startswith("visits: -")
    # one of them is clear of 0: another colour, and for print another marker
    points = [line for line in axes.lines if line.get_marker() in ("o", "D")]
    assert [line.get_marker() for line in points] == ["o", "D"]
    assert len({line.get_color() for line in points}) == 2
    plain = hotelling_test(X, Y, bounds=(0, 10), **options)
    assert plot_differences(plain, axes=axes) is axes
    one = ttest_ind(X[:, 0], Y[:, 1], bounds=(0, 10), epsilon=5, noise=SimulatedNoise(0))
    assert "p-value" in plot_differences(one).get_title()
    with pytest.raises(ParameterError, match="hotelling_test or ttest_ind"):
        plot_differences(hotelling_1samp(X, 3, bounds=(0, 10), **options))


def test_means(tmp_path):
    # so little budget that a noisy mean is cut to its bounds
    few: dict[str, Any] = {"epsilon": 0.002, "noise": SimulatedNoise(0)}
    estimate = private_mean(X, bounds=(0, 10), n_bootstrap=19, rng=0, **few)
    assert np.any(estimate.mean == 0)
    figure = plot_means(estimate)
    assert len(figure.axes) == 2
    figure.savefig(tmp_path / "means.png")
    assert (tmp_path / "means.png").stat().st_size > 0


@pytest.fixture
def command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text(
        "age,visits,plan\n" + "".join(f"{a:.3f},{b:.3f},x\n" for a, b in X)
    )
    app = typer.Typer()
    app.command()(command_of("mean"))

    def run(*arguments: str) -> None:
        app(
            ["visits.csv", "--epsilon", "5", "--no-ledger", *arguments],
            standalone_mode=False,
        )

    return run


BOUNDS = ("--bounds", "age=0:10", "--bounds", "visits=0:10")


def test_command(command, capsys, tmp_path):
    command(*BOUNDS, "--plot", "means.svg")
    printed = capsys.readouterr().out
    assert printed.startswith("Private means of 300 rows")
    assert "visits" in printed
    assert "Privacy spent: epsilon = 5" in printed
    assert (tmp_path / "means.svg").read_text().startswith("<?xml")


def test_command_json(command, capsys):
    command(*BOUNDS, "--columns", "visits", "--json", "--delta", "1e-6")
    document = json.loads(capsys.readouterr().out)
    assert document["columns"] == ["visits"]
    assert document["n"] == 300
    assert document["mean"][0] == pytest.approx(X[:, 1].mean(), abs=1.5)
    assert document["delta"] == 1e-6


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "has to be declared"),
        (("--columns", "age", "--bounds", "visits=0:10"), "'age' has no bounds"),
        ((*BOUNDS, "--plot", "means.txt"), "--plot must end"),
        ((*BOUNDS, "--alpha", "2"), "alpha"),
    ],
)
def test_command_refuses(command, arguments, words):
    with pytest.raises(ParameterError, match=words):
        command(*arguments)
