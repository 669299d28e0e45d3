"""What was found: sums over runs, small enough to be kept with the package."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from privatest.core.documents import write_text
from privatest.core.errors import ParameterError
from privatest.planning.simulation import clopper_pearson
from privatest_papers.experiment import By, Experiment

__all__ = ["Row", "Rows", "load", "published", "shipped"]


@dataclass(frozen=True, slots=True)
class Row:
    """One method at one point.

    Parameters
    ----------
    panel, x, method, by
        Where, and what.
    runs : int
        Simulated studies.
    total, squares : float
        Sum of the values, and of their squares; of rejections both are their number.
    """

    panel: str
    x: float
    method: str
    by: By
    runs: int
    total: float
    squares: float

    @property
    def mean(self) -> float:
        """Share of rejections, or mean distance."""
        return self.total / self.runs

    @property
    def error(self) -> float:
        """Its standard error; that of a rate is never 0, as if half a run had gone otherwise."""
        if self.squares == self.total:  # rejections
            rate = min(max(self.mean, 0.5 / self.runs), 1 - 0.5 / self.runs)
            return math.sqrt(rate * (1 - rate) / self.runs)
        spread = max(self.squares - self.runs * self.mean**2, 0.0)
        return math.sqrt(spread / max(self.runs - 1, 1) / self.runs)

    @property
    def band(self) -> tuple[float, float]:
        """An interval of level .95: Clopper and Pearson's for a rate."""
        if self.squares == self.total:
            return clopper_pearson(round(self.total), self.runs)
        return self.mean - 1.96 * self.error, self.mean + 1.96 * self.error


@dataclass(frozen=True, slots=True)
class Rows:
    """All that was found for an experiment."""

    name: str
    rows: tuple[Row, ...]

    def at(self, panel: str, method: str) -> list[Row]:
        """Return the rows of one method in one panel, by place."""
        own = (row for row in self.rows if row.panel == panel and row.method == method)
        return sorted(own, key=lambda row: row.x)

    def with_more(self, other: Rows) -> Rows:
        """Return these rows, with those of ``other`` where it has more runs, or other methods."""
        best: dict[tuple[str, float, str], Row] = {}
        for row in (*self.rows, *other.rows):
            key = (row.panel, row.x, row.method)
            if key not in best or row.runs >= best[key].runs:
                best[key] = row
        return Rows(self.name, tuple(best.values()))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"experiment": self.name, "rows": [asdict(row) for row in self.rows]}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file, a row a line."""
        lines = ",\n".join(f"  {json.dumps(_short(asdict(row)))}" for row in self.rows)
        write_text(path, f'{{"experiment": {json.dumps(self.name)}, "rows": [\n{lines}\n]}}\n')


def _short(row: dict[str, Any]) -> dict[str, Any]:
    return {key: round(v, 10) if isinstance(v, float) else v for key, v in row.items()}


def load(path: str | os.PathLike[str]) -> Rows:
    """Read what :meth:`Rows.save` wrote."""
    try:
        return _read(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError):
        raise ParameterError(
            f"{str(path)!r} must be a file that `privatest reproduce run` wrote."
        ) from None


def shipped(experiment: Experiment) -> Rows:
    """Return what comes with the package; no rows if the experiment was never run."""
    place = files("privatest_papers").joinpath("results", f"{experiment.name}.json")
    if not place.is_file():
        return Rows(experiment.name, ())
    return _read(place.read_text(encoding="utf-8"))


def published(name: str) -> dict[str, Any]:
    """Return the numbers of a paper that come with the package."""
    text = files("privatest_papers").joinpath("published", name).read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def _read(text: str) -> Rows:
    document = json.loads(text)
    return Rows(document["experiment"], tuple(Row(**row) for row in document["rows"]))
