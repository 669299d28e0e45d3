"""Make the tables of power that planning interpolates: src/privatest/planning/power.json.

Run: python -m tools.power_tables [--seconds 14] [--only TEXT]. Each entry is a test and a kind of
effect. Studies of random size, epsilon and effect are simulated one by one, each with effects
that the fit so far takes to be neither hopeless nor certain; then a smooth curve is fitted to all
of them by penalised maximum likelihood. Studies are kept in a file (--nodes), so that more can be
added later. An entry without studies in that file keeps its shipped curve.
"""

from __future__ import annotations

import argparse
import json
import math
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr

from privatest.noise import SimulatedNoise
from privatest.planning.simulation import ready, takes
from privatest.planning.tables import FEATURES, PowerCurve, features
from privatest.simulation import (
    Sampler,
    atoms,
    dependence,
    heavy_tails,
    mixture,
    proportions,
    scale,
    shape,
    shift,
    tables,
)
from tools.power_chances import CHANCES, chances_of

PAGE = Path(__file__).parent.parent / "src" / "privatest" / "planning" / "power.json"
ALPHA = 0.05
_KEPT = math.log(1 - ALPHA)
USUAL = ("shift", "dependence")
SIZES = (20, 40, 80, 160, 320, 640)  # few, because laws are found again
EPSILONS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 10.0, 1e3)  # the last is no noise
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Kind:
    """From a strength to a sampler, and the largest strength."""

    make: Callable[[float], Sampler]
    most: float


def shares(strength: float) -> Sampler:
    return proportions(strength / math.sqrt(1 + strength**2))


KINDS: dict[tuple[str, str, int], Kind] = {
    ("two-sample", "shift", 1): Kind(shift, 1.9),
    ("two-sample", "heavy_tails", 1): Kind(heavy_tails, 3.0),
    ("two-sample", "scale", 1): Kind(lambda s: scale(math.exp(s)), 0.53),
    ("two-sample", "shape", 1): Kind(shape, 1.0),
    ("two-sample", "mixture", 1): Kind(mixture, 1.0),
    ("two-sample", "atoms", 1): Kind(atoms, 0.5),
    ("two-sample", "proportions", 1): Kind(shares, 0.57),
    ("two-sample", "tables", 1): Kind(tables, 0.5),
    ("two-sample", "shift", 3): Kind(lambda s: shift(s, columns=3), 1.9),
    ("two-sample", "shift", 10): Kind(lambda s: shift(s, columns=10), 1.9),
    ("independence", "dependence", 1): Kind(dependence, 0.98),
    ("independence", "curve", 1): Kind(lambda s: dependence(s, form="curve"), 0.98),
    ("independence", "tables", 1): Kind(lambda s: tables(s, question="independence"), 0.5),
    ("paired", "shift", 1): Kind(lambda s: shift(s, question="paired"), 1.9),
    ("paired", "heavy_tails", 1): Kind(lambda s: heavy_tails(s, question="paired"), 3.0),
    ("paired", "mixture", 1): Kind(lambda s: mixture(s, question="paired"), 1.0),
    ("fit", "shift", 1): Kind(lambda s: shift(s, question="fit"), 1.9),
}
PUBLIC = ("mann-whitney", "ks", "kuiper", "mmd", "mean", "wasserstein", "median", "ttest")
PRIVATE = ("mann-whitney", "ks", "kuiper", "mmd", "mean", "wasserstein")
BY_MEANS = ("mean", "wasserstein", "ttest")  # far behind, but for shifts of normal values
# Fewer than by default, to be quick: it costs the tests a hundredth of power or so.
SLOW: dict[str, dict[str, int]] = {
    "mmd": {"n_permutations": 299},
    "hsic": {"n_permutations": 299},
    "proportion": {"n_simulations": 999},
    "chi2": {"n_simulations": 999},
    "hotelling": {"n_bootstrap": 299},
}


def entries() -> Iterator[tuple[str, str, int, str, str]]:
    """Yield question, kind, columns, membership and method, the most wanted first."""
    for kind in ("shift", "scale", "shape", "heavy_tails", "atoms", "mixture"):
        if kind == "scale":
            for method in ("sign", "wilcoxon", "ks", "kuiper", "ttest"):
                yield "paired", "shift", 1, "public", method
            for method in ("spearman", "kendall", "hsic", "pearson", "slope"):
                yield "independence", "dependence", 1, "public", method
            for membership in ("public", "private"):
                for method in ("proportion", "mmd"):
                    yield "two-sample", "proportions", 1, membership, method
                for method in ("mmd", "mean"):
                    for columns in (3, 10):
                        yield "two-sample", "shift", columns, membership, method
                for method in ("tv", "mmd"):
                    yield "two-sample", "tables", 1, membership, method
            for columns in (3, 10):
                yield "two-sample", "shift", columns, "public", "hotelling"
            for method in ("chi2", "hsic"):
                yield "independence", "tables", 1, "public", method
            yield "fit", "shift", 1, "public", "distribution"
        if kind == "shape":
            for method in ("hsic", "spearman", "kendall"):
                yield "independence", "curve", 1, "public", method
        for membership, methods in (("public", PUBLIC), ("private", PRIVATE)):
            for method in methods:
                if kind in ("shift", "scale") or method not in BY_MEANS:
                    yield "two-sample", kind, 1, membership, method
    for kind in ("heavy_tails", "mixture"):
        for method in ("sign", "wilcoxon", "ks", "kuiper"):
            yield "paired", kind, 1, "public", method


def fit(nodes: Floats, like: PowerCurve | None = None) -> PowerCurve:
    """Fit a curve to studies: strength, n, budget (noise scale in it), chance to be rejected.

    ``like`` is the curve of the same test for a kind of effect with many studies: noise and shape
    of a curve depend on the test more than on the kind, so few studies are drawn towards it.
    """
    strength, n, budget, rejected = nodes.T
    chance = np.sqrt(n)
    unit = float(np.median(strength * chance))
    signal = strength * chance / unit
    start = np.array([-1.5, 2.0, 0.5, 0, 0, 0, 0, 0, 0, 0, math.log(3.0)])
    tight = np.array([0.1, 0.02, 0.5, 3.0, 3.0, 3.0, 0.1, 0.1, 1.0, 1.0, 0.5])
    if like is not None:
        start = np.array([*like.weights, math.log(like.noise)])
        tight = np.array([1.0, 1.0, 1.0, 6.0, 6.0, 6.0, 0.5, 0.5, 2.0, 2.0, 6.0])

    # without an effect the power is alpha: known, not simulated
    none = np.array([(math.sqrt(n), e * math.sqrt(n)) for n in SIZES for e in EPSILONS]).T

    def loss(values: Floats) -> tuple[float, Floats]:
        def only(values: Floats) -> float:
            noise = math.exp(values[-1])
            rows = features(signal, budget, chance, noise) @ values[:-1]
            power = ALPHA + (1 - ALPHA) * ndtr(rows)
            own = rejected * np.log(power) + (1 - rejected) * (_KEPT + log_ndtr(-rows))
            still = features(np.zeros(none.shape[1]), none[1], none[0], noise) @ values[:-1]
            known = float(log_ndtr(-still).sum()) * 3
            prior = 0.5 * float((tight * (values - start) ** 2).sum())
            return prior - float(own.sum()) - known

        middle, step = only(values), 1e-5
        slopes = [(only(values + step * row) - middle) / step for row in np.eye(len(values))]
        return middle, np.array(slopes)

    limits = [(None, None)] * FEATURES + [(math.log(0.05), math.log(1000.0))]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=limits).x
    weights = tuple(round(float(weight), 5) for weight in found[:-1])
    studies = len(np.unique(nodes[:, :2], axis=0))  # of one data set at several epsilons: one
    return PowerCurve(unit, math.exp(float(found[-1])), weights, studies)


def strength_for(curve: PowerCurve, power: float, n: int, budget: float, most: float) -> float:
    """Return the strength that has this power by the curve; nan if none has."""
    grid = np.geomspace(most / 300, most, 60)
    chance = np.full(60, math.sqrt(n))
    rows = features(grid * chance / curve.unit, np.full(60, budget), chance, curve.noise)
    powers = ALPHA + (1 - ALPHA) * ndtr(rows @ np.array(curve.weights))
    above = np.flatnonzero(powers >= power)
    return float(grid[above[0]]) if len(above) else math.nan


def one_study(
    kind: Kind, method: str, membership: str, n: int, epsilon: float, strength: float, seed: int
) -> list[tuple[float, float, float, float]]:
    """Simulate one study; where noise is cheap, at several epsilons."""
    sampler = kind.make(strength)
    call = ready(method, sampler, membership, SLOW.get(method, {}))
    data = sampler.draw(n, np.random.default_rng([seed, 0]))
    rng = {"rng": np.random.default_rng([seed, 1])} if takes(call.func, "rng") else {}  # type: ignore[attr-defined]
    settings = {"alpha": ALPHA, "noise": SimulatedNoise(seed), **rng}
    if method in CHANCES:
        found = chances_of(method, call, data, epsilon, EPSILONS, **settings)
    else:
        found = {epsilon: float(call(*data, epsilon=epsilon, **settings).reject)}
    return [
        (sampler.strength, n, each * math.sqrt(n) / sampler.noise_scale, chance)
        for each, chance in found.items()
    ]


def measure(
    entry: tuple[str, str, int, str, str], nodes: list[tuple[float, ...]], seconds: float, most: int
) -> list[tuple[float, ...]]:
    """Add studies of an entry for some processor seconds."""
    question, kind_name, columns, membership, method = entry
    kind = KINDS[question, kind_name, columns]
    first = zlib.crc32(repr(entry).encode()) + len(nodes)
    rng = np.random.default_rng(first)
    start, curve, fitted = time.process_time(), None, 0
    often = np.array([1.5, 2, 2, 2, 1, 0.7] if method in SLOW else [1.0] * len(SIZES))
    often /= often.sum()
    while len(nodes) < most and (time.process_time() - start < seconds or len(nodes) < 160):
        if len(nodes) >= max(100, int(1.4 * fitted)):
            curve, fitted = fit(np.array(nodes)), len(nodes)
        n, epsilon = int(rng.choice(SIZES, p=often)), float(rng.choice(EPSILONS))
        budget = epsilon * math.sqrt(n)
        if curve is None:
            strength = 3.0 * math.sqrt(1 + (2.5 / budget) ** 2) / math.sqrt(n)
            strength = min(strength * math.exp(rng.uniform(-1.2, 1.4)), kind.most)
        else:
            strength = strength_for(curve, rng.uniform(0.15, 0.97), n, budget, kind.most)
        if math.isnan(strength):
            if rng.random() < 0.97:
                continue  # no effect is seen there: nothing to learn
            strength = kind.most
        strength = min(strength * math.exp(rng.uniform(-0.02, 0.02)), kind.most)
        seed = first + len(nodes)
        nodes += one_study(kind, method, membership, n, epsilon, strength, seed)
    return nodes


def blind(nodes: Floats) -> bool:
    """Return whether even large effects are not seen without noise."""
    large = (nodes[:, 0] * np.sqrt(nodes[:, 1]) > 4) & (nodes[:, 2] > 20)
    return bool(large.sum() > 30 and nodes[large, 3].mean() < 0.2)


def place(curve: dict[str, Any]) -> list[Any]:
    """Return what a curve is for."""
    return [curve[name] for name in ("question", "kind", "columns", "membership", "method")]


def shipped(measured: Iterable[list[Any]]) -> list[dict[str, Any]]:
    """Return the shipped curves of entries that were not measured this time."""
    made = list(measured)
    curves = json.loads(PAGE.read_text(encoding="utf-8"))["curves"] if PAGE.exists() else []
    return [curve for curve in curves if place(curve) not in made]


def write(kept: dict[str, list[tuple[float, ...]]]) -> None:
    """Fit every entry and write the tables."""
    found = []
    places = {key: json.loads(key) for key in kept}
    likes = {
        (each["question"], each["membership"], each["method"]): PowerCurve.read(each)
        for each in shipped(places.values())
        if each["kind"] in USUAL and each["columns"] == 1 and each["weights"]
    }
    # the usual kind of each question first: it has the most studies
    usual = sorted(kept, key=lambda key: (places[key][1] not in USUAL, places[key][2], key))
    for key in usual:
        question, kind, columns, membership, method = places[key]
        nodes, test = np.array(kept[key]), (question, membership, method)
        if blind(nodes):
            curve = PowerCurve(1.0, 1.0, (), len(nodes))
        else:
            curve = fit(nodes, likes.get(test) if columns == 1 else None)
            likes.setdefault(test, curve)
        found.append(
            {
                "question": question,
                "kind": kind,
                "columns": columns,
                "membership": membership,
                "method": method,
                "unit": float(f"{curve.unit:.5g}"),
                "noise": float(f"{curve.noise:.5g}"),
                "weights": curve.weights,
                "runs": curve.runs,
            }
        )
    found = sorted([*found, *shipped(places.values())], key=place)
    rows = ",\n".join(json.dumps(each) for each in found)
    head = {
        "made": date.today().isoformat(),
        "by": "python -m tools.power_tables",
        "alpha": ALPHA,
        "delta": 0,
        "sizes": SIZES,
        "epsilons": EPSILONS,
    }
    text = json.dumps(head)[:-1]
    PAGE.write_text(f'{text}, "curves": [\n{rows}\n]}}\n', encoding="utf-8")


def main() -> None:
    """Simulate, fit and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=14.0, help="of a processor, an entry")
    parser.add_argument("--most", type=int, default=3000, help="studies of an entry")
    parser.add_argument("--only", default="", help="entries with this text")
    parser.add_argument("--nodes", type=Path, default=Path("power-nodes.json"))
    parser.add_argument("--new", action="store_true", help="only entries without studies")
    parser.add_argument("--thin", type=int, help="only entries whose shipped curve has fewer runs")
    parser.add_argument("--fit-only", action="store_true", help="simulate nothing more")
    options = parser.parse_args()
    text = options.nodes.read_text() if options.nodes.exists() else "{}"
    kept: dict[str, Any] = json.loads(text)
    runs = {json.dumps(place(curve)): curve["runs"] for curve in shipped([])}
    for entry in entries():
        key = json.dumps(entry)
        if options.fit_only or options.only not in key:
            continue
        if options.thin is not None and runs.get(key, 0) >= options.thin:
            continue
        before, began = len(kept.get(key, [])), time.time()
        if before >= options.most or (before and options.new):
            continue
        kept[key] = measure(
            entry, list(map(tuple, kept.get(key, []))), options.seconds, options.most
        )
        rate = np.mean([row[3] for row in kept[key]])
        print(
            key, before, len(kept[key]), f"{rate:.2f}", f"{time.time() - began:.0f} s", flush=True
        )
        options.nodes.write_text(json.dumps(kept))
    write(kept)


if __name__ == "__main__":
    main()
