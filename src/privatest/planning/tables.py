"""The shipped tables: curves of power, fitted to simulated studies by tools/power_tables.py."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from privatest.core.chance import reach
from privatest.planning.curves import Curve
from privatest.requests.catalogue import METHODS
from privatest.simulation.sampler import Sampler

__all__ = ["LEVEL", "curve_of", "effective", "kinds_of", "tables_source", "tabulated"]

Key = tuple[str, str, int, str, str]
LEVEL = 0.05  # that all curves are for
_NEAR = 2.6  # as a factor of the number of columns, for a ranking
_BOUNDS = (0.75, 1.35)  # how far bounds may be from those of the tables
# Means and shares move by the width of the bounds over n: only there it is known how noise grows.
_BY_WIDTH = ("methods.means.", "methods.tables.", "methods.proportions.", "methods.regression.")


@cache
def _document() -> dict[str, Any]:
    text = files("privatest.planning").joinpath("power.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


@cache
def _curves() -> Mapping[Key, Curve]:
    names = ("question", "kind", "columns", "membership", "method")
    return {
        tuple(entry[name] for name in names): Curve.read(entry) for entry in _document()["curves"]
    }


def tables_source(sizes: Sequence[int], epsilon: float) -> str:
    """Return when the tables were made, and whether their studies were like this one."""
    fewest, most = min(_document()["sizes"]), max(_document()["sizes"])
    least = min(_document()["epsilons"])
    people = round(reach(sizes, epsilon)[0] ** 2)  # as many in each of two groups
    outside = []
    if not fewest <= people <= most:
        outside.append(f"n = {people:,}, where the simulated studies have {fewest} to {most}")
    if epsilon < least:
        outside.append(f"epsilon {epsilon:.3g}, where they have at least {least:g}")
    words = f"tables of {_document()['made']}"
    return words + (f", extrapolated ({'; '.join(outside)})" if outside else "")


def tabulated(question: str, kind: str, columns: int, membership: str) -> dict[str, Curve]:
    """Return the curves of all methods for a kind of effect; of the nearest number of columns."""
    having = {
        key[2]
        for key in _curves()
        if key[0] == question and key[1] == kind and key[3] == membership
    }
    near = min(having, key=lambda own: abs(math.log(own / columns)), default=0)
    if not near or max(near / columns, columns / near) > _NEAR or (near == 1) != (columns == 1):
        return {}
    place = (question, kind, near, membership)
    return {key[4]: curve for key, curve in _curves().items() if key[:4] == place}


def kinds_of(question: str, columns: int = 1) -> list[str]:
    """Return the kinds of effects that the tables have for a question."""
    found = [key[1] for key in _curves() if key[0] == question and (key[2] == 1) == (columns == 1)]
    return list(dict.fromkeys(found))


def effective(method: str, sampler: Sampler, epsilon: float) -> float | None:
    """Return the epsilon that means the same noise with the bounds of the tables.

    None where these bounds are too far from those of the tables to know.
    """
    entry = METHODS[sampler.question][method]
    if math.isnan(sampler.noise_scale):
        return None
    if entry.unbounded:
        return epsilon
    by_width = entry.function.startswith(_BY_WIDTH) or entry.preset.get("distance") == "mean"
    if not by_width and not _BOUNDS[0] <= sampler.noise_scale <= _BOUNDS[1]:
        return None
    return epsilon / sampler.noise_scale


def curve_of(
    method: str, sampler: Sampler, membership: str, *, alpha: float, delta: float
) -> Curve | None:
    """Return the curve of a method for a sampler's kind, where the tables have it."""
    entry = METHODS[sampler.question].get(method)
    if entry is None or alpha != LEVEL or (delta and entry.gaussian):
        return None
    if effective(method, sampler, 1.0) is None:
        return None
    key = (sampler.question, sampler.kind, sampler.columns, membership, method)
    return _curves().get(key)
