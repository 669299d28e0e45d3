"""MST and AIM of OpenDP on a coded table; run by ``benchmarks.release.adult --peers``.

It stands alone, for a Python of its own: pip install "opendp[mbi]==0.16.0" (with it come mbi 1.1.0
and jax, which ours does not need). By hand: python peers.py JOB.npz ROWS.npz

MST: its defaults. AIM: workload of all pairs; half of the budget for tables of one column (its
default), the rest in ROUNDS steps at the start, as private-pgm's script does with twice as many
rounds; models of at most SIZE MB (with 80, the default, it can take many hours, say its authors).
Both fit with 1000 iterations of mirror descent, the default. Neighbours differ by one row, added
or removed. Budgets are of zCDP, converted by OpenDP. Their noise cannot be seeded: a seed is the
number of a run.

Two defects are kept away from the peers. Rows: ``synthetic_data`` of mbi 1.1.0 makes columns with
a common parent move together, found and fixed by its authors after that version (their pull
request 145), so ``draw`` below does what they do since; on Adult at epsilon 1, pairs of
private-pgm's MST were .13 away before and .05 after. Rounding: parts of MST's budget can add up to
a bit more than all of it, which it refuses; the budget is lowered by 1e-4 of itself until they
do not.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
ROUNDS, SIZE = 14, 10.0
ITERATIONS = 1000  # the default of mbi 1.1.0: recorded, not passed on


def rho_of(dp: Any, epsilon: float, delta: float) -> float:
    """Return the largest rho of zCDP that is (epsilon, delta) by OpenDP's conversion."""
    low, high = 1e-8, 100.0
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    for _ in range(60):
        rho = (low * high) ** 0.5
        noise = dp.m.make_gaussian(*space, scale=(2 * rho) ** -0.5)
        if dp.c.make_zCDP_to_approxDP(noise).map(1).epsilon(delta) <= epsilon:
            low = rho
        else:
            high = rho
    return low


def accepted(dp: Any, rho: float, columns: int) -> float:
    """Lower rho until the parts of MST's selections add up, in its arithmetic, to their whole."""
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    measure = dp.zero_concentrated_divergence()
    for step in range(1000):
        lower = rho * (1 - step * 1e-4)
        pairs = _before(lower - lower * 0.5)
        whole = _before(pairs - pairs * 0.9)
        part = float(np.nextafter(whole / (columns - 1), -np.inf))
        parts = [part] * (columns - 1)
        made = dp.c.make_adaptive_composition(*space, measure, d_in=1.0, d_mids=parts)
        if made.map(1.0) <= whole:
            return lower
    raise RuntimeError("no budget is accepted")


def _before(value: float) -> float:
    return float(np.nextafter(np.nextafter(value, -np.inf), -np.inf))


def fitted(method: str, rows: Rows, sizes: dict[str, int], rho: float) -> Any:
    """Return the peer's graphical model; codes are cut, so that its cells are ours."""
    dp, polars = import_module("opendp.prelude"), import_module("polars")
    data = polars.LazyFrame(dict(zip(sizes, rows.T, strict=True)))
    if method == "mst":
        algorithm = dp.mbi.MST()
    else:
        pairs = [dp.mbi.Count(pair) for pair in itertools.combinations(sizes, 2)]
        algorithm = dp.mbi.AIM(queries=pairs, rounds=ROUNDS, max_size=SIZE)
    context = dp.Context.compositor(
        data=data, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=rho)
    )
    cuts = {name: list(range(size - 1)) for name, size in sizes.items()}
    query = context.query(rho=rho).contingency_table(cuts=cuts, algorithm=algorithm)
    return query.release().model


def draw(model: Any, total: int, rng: np.random.Generator) -> dict[str, Rows]:
    """Draw rows of a graphical model, column by column, counts rounded at random."""
    trees, oracles = import_module("mbi.junction_tree"), import_module("mbi.marginal_oracles")
    tree, order = trees.make_junction_tree(model.domain, [set(clique) for clique in model.cliques])
    cliques = [set(clique) for clique in tree.nodes]
    tables = oracles.message_passing_stable(model.potentials.expand(list(tree.nodes)))
    made: dict[str, Rows] = {}
    for name in reversed(order):
        near = set().union(*(clique for clique in cliques if name in clique))
        parents = [other for other in made if other in near]
        table = np.asarray(tables.project((*parents, name)).datavector(flatten=False), dtype=float)
        table = table.reshape(-1, table.shape[-1])
        codes: Rows = np.zeros(total, dtype=np.int64)
        for parent in parents:
            codes = codes * model.domain[parent] + made[parent]
        places = np.argsort(codes, kind="stable")
        made[name] = np.empty(total, dtype=np.int64)
        for group in np.split(places, np.flatnonzero(np.diff(codes[places])) + 1):
            made[name][group] = _rounded(table[codes[group[0]]], len(group), rng)
    return made


def _rounded(weights: NDArray[np.float64], total: int, rng: np.random.Generator) -> Rows:
    """Return codes in random order, each its share of the total, rounded at random."""
    wanted = weights / weights.sum() * total
    counts = np.floor(wanted).astype(np.int64)
    rest = wanted - counts
    if left := total - int(counts.sum()):
        counts[rng.choice(counts.size, left, replace=False, p=rest / rest.sum())] += 1
    return rng.permutation(np.repeat(np.arange(counts.size), counts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", help="what benchmarks.release.adult wrote")
    parser.add_argument("target", help="where the rows go")
    options = parser.parse_args()
    with np.load(options.job) as job:
        rows, asked = job["rows"], json.loads(str(job["asked"]))
    dp = import_module("opendp.prelude")
    dp.enable_features("contrib", "honest-but-curious")
    import_module("mbi.estimation")  # what is slow to import is not part of the time
    began = time.process_time()
    rho = rho_of(dp, asked["epsilon"], asked["delta"])
    method, _, replaced = asked["method"].partition("-")
    rho = rho / 2 if replaced else rho
    if method == "mst":
        rho = accepted(dp, rho, len(asked["sizes"]))
    model = fitted(method, rows, asked["sizes"], rho)
    made = draw(model, int(model.total), np.random.default_rng(asked["seed"]))
    facts: dict[str, Any] = {"seconds": time.process_time() - began, "rho": rho}
    facts |= {name: version(name) for name in ("opendp", "mbi")} | {"iterations": ITERATIONS}
    facts |= {"rounds": ROUNDS, "megabytes": SIZE} if method == "aim" else {}
    columns = np.column_stack([made[name] for name in asked["sizes"]])
    np.savez(options.target, rows=columns, facts=json.dumps(facts))


if __name__ == "__main__":
    main()
