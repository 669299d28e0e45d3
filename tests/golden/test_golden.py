"""Results of every catalogue entry and public function, pinned under simulated noise.

A move of code must not change them. Where one changes on purpose, run
``python -m tests.golden.test_golden`` and say why in the commit. Numbers are compared to nine
digits. Eigenvectors of nearly equal eigenvalues depend on the processor for which OpenBLAS has
code, so the cases run in a process that always takes the same code.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import platform
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import privatest as pt
from privatest.data.schema import CategoricalColumn, NumericColumn
from privatest.noise import SimulatedNoise
from privatest.requests.catalogue import METHODS
from privatest.requests.prepare import prepare
from privatest.requests.request import Request

STORED = Path(__file__).parent / "results.json"
SCHEMA = pt.Schema(
    {
        "u": NumericColumn(0, 1),
        "v": NumericColumn(-2, 3),
        "hit": NumericColumn(0, 1, integer=True),
        "arm": CategoricalColumn(("new", "old"), membership="public"),
        "plan": CategoricalColumn(("basic", "plus")),
        "site": CategoricalColumn(("a", "b", "c"), membership="public"),
    }
)
N = 600


@cache
def rows() -> pa.Table:
    """Return made-up rows with ties, values beyond the bounds and unequal groups."""
    rng = np.random.default_rng(20261118)
    u = rng.beta(2, 3, size=N)
    return pa.table(
        {
            "u": u,
            "v": np.round(u + rng.normal(size=N), 1),
            "hit": rng.integers(2, size=N),
            "arm": np.array(["new", "old"])[(rng.random(N) > 0.4).astype(int)],
            "plan": np.array(["basic", "plus"])[(u + rng.random(N) > 1).astype(int)],
            "site": np.array(["a", "b", "c"])[rng.integers(3, size=N)],
        }
    )


def column(name: str) -> Any:
    """Return one column as an array."""
    return rows().column(name).to_numpy(zero_copy_only=False)


def parts(name: str, by: str = "arm") -> list[Any]:
    """Return one column, cut into the groups of another one."""
    return [column(name)[column(by) == label] for label in np.unique(column(by))]


def of_request(question: str, method: str, group: str) -> Any:
    """Return what a request of the catalogue answers."""
    entry = METHODS[question][method]
    compared = ["site"] if method == "tv" else ["hit"] if entry.outcomes else ["v"]
    sides = {"x": ["plan"], "y": ["site"]} if entry.categorical else {"x": ["u"], "y": ["v"]}
    target = {"dist": {"dist": "norm(0.5, 1)"}, "family": {"family": "norm"}}
    columns: dict[str, dict[str, Any]] = {
        "two-sample": {"group": group, "columns": compared},
        "independence": sides | ({"given": ["site"]} if entry.part == "given" else {}),
        "paired": {"before": "u", "after": "v"},
        "fit": {"column": "v"} | target.get(entry.part, {"column": "site", "shares": "equal"}),
        "mean": {"columns": compared if entry.one_column or entry.outcomes else ["u", "v"]},
        "release": {"columns": ["u", "site"], "delta": 1e-6},
    }
    few = {"permutations": 19, "points": 20, "locations": 3, "low": -0.1, "high": 0.1}
    wanted = {*entry.needed, *({"permutations", "points"} & entry.options.keys())}
    options = {name: few[name] for name in wanted} | ({"success": 1} if entry.outcomes else {})
    head = {"question": question, "method": method, "epsilon": 1}
    prepared = prepare(Request.from_dict(head | columns[question] | options), SCHEMA)
    taken = inspect.signature(prepared.request.entry.function).parameters
    more: dict[str, Any] = {"rng": 0} if "rng" in taken else {}
    more |= {name: 99 for name in ("n_bootstrap", "n_simulations", "n_resamples") if name in taken}
    return prepared.run(rows().select(prepared.reads), noise=SimulatedNoise(3), **more)


def linear(u: Any, z: Any) -> Any:
    """Return x given z, for the conditional randomisation test."""
    return u * (1.0 + np.ravel(z)) / 2.0


def _uniform(x: Any) -> Any:
    return np.clip(x, 0, 1)


def calls() -> dict[str, Callable[[], Any]]:
    """Return a call for each case."""
    found: dict[str, Callable[[], Any]] = {}
    for question, methods in METHODS.items():
        for method, entry in methods.items():
            groups = ["arm", "plan"] if question == "two-sample" else [""]
            for group in groups[: 1 if entry.public_groups else 2]:
                name = f"{question}/{method}" + (f", by {group}" if group else "")
                found[name] = lambda q=question, m=method, g=group: of_request(q, m, g)  # type: ignore[misc]
    head: dict[str, Any] = {"epsilon": 1}

    def add(name: str, *data: Any, **options: Any) -> None:
        function = getattr(pt, name.split(",", maxsplit=1)[0])

        def call() -> Any:
            taken = inspect.signature(function).parameters
            more = {"rng": 0} if "rng" in taken else {}
            return function(*data, **(head | more | options), noise=SimulatedNoise(5))

        found[name] = call

    unit, wide = {"bounds": (0, 1)}, {"bounds": (-2, 3)}
    x, y = parts("v")
    sites = parts("u", "site")
    hits = parts("hit")
    pair = np.column_stack([column("u"), column("v") / 5 + 0.4])
    few = {"n_permutations": 19}
    add("binom_test", column("hit"), success=1)
    add("binom_test, greater", column("hit"), success=1, p=0.45, alternative="greater")
    add(
        "chi2_contingency, arrays",
        column("plan"),
        column("site"),
        categories_x=["basic", "plus"],
        categories_y=["a", "b", "c"],
    )
    add(
        "conditional_randomisation_test",
        column("u"),
        column("v"),
        column("hit").astype(float),
        linear,
        bounds_x=(0, 1),
        bounds_y=(-2, 3),
        n_resamples=19,
    )
    add("f_oneway, pooled", *sites, **unit)
    add("f_oneway, Welch", *sites, **unit, equal_var=False)
    add("hodges_lehmann", x, y, **wide)
    add("hotelling_1samp", pair, mean=[0.4, 0.5], **unit)
    add("hotelling_test, Gaussian", pair[:250], pair[250:], **unit, delta=1e-6)
    add(
        "hsic_test, decision",
        column("u"),
        column("v"),
        bounds_x=(0, 1),
        bounds_y=(-2, 3),
        release="decision",
        **few,
    )
    add("ipm_test, Wasserstein", x, y, **wide, distance="wasserstein", **few)
    add("kendalltau, less", column("u"), column("v"), alternative="less")
    add("kruskal, three", *sites)
    add("ks_1samp, cdf", column("u"), _uniform)
    add("ks_2samp, one-sided", x, y, alternative="less")
    add("linregress", column("u"), column("v"), bounds_x=(0, 1), bounds_y=(-2, 3))
    add("mannwhitneyu, less", x, y, alternative="less")
    add("mannwhitneyu, private groups", x, y, adjacency="row", **few)
    add("me_permutation_test", pair[:250], pair[250:], **unit, locations=3, **few)
    add("mmd_test, three public groups", *sites, **unit, **few)
    add("mmd_test, three private groups", *sites, **unit, adjacency="row", **few)
    add("mmd_test, two columns", pair[:250], pair[250:], **unit, **few)
    add(
        "pearsonr, greater",
        column("u"),
        column("v"),
        bounds_x=(0, 1),
        bounds_y=(-2, 3),
        alternative="greater",
    )
    add(
        "permutation_test",
        tuple(x_[:200] for x_ in (x, y)),
        lambda a, b: abs(np.mean(a) - np.mean(b)),
        sensitivity=5 / 200,
        **wide,
        check_sensitivity=False,
        **few,
    )
    add("private_covariance", pair, **unit)
    add("private_covariance, Gaussian", pair, **unit, delta=1e-6)
    add("private_mean, Gaussian", pair, **unit, delta=1e-6)
    add("private_median", column("v"), **wide)
    add("private_quantile, upper", column("v"), q=0.9, **wide)
    add("private_share", column("hit"), success=1)
    add("proportions_test, less", *hits, success=1, alternative="less")
    add("scf_test", pair[:250], pair[250:], **unit, frequencies=3)
    add("share", pair, **unit, locations=3, delta=1e-6)
    add("sign_test, greater", column("v"), alternative="greater")
    add("symmetry_test", column("v"))
    add("test_of_tests, Kruskal", *sites[:2], pvalue="kruskal")
    add("tost_ind", x, y, low=-0.2, high=0.2, **wide)
    add("tost_proportions", *hits, success=1, low=-0.2, high=0.2)
    add("tost_rel", column("u"), column("v"), low=-0.2, high=0.2, **wide)
    add("ttest_1samp", column("v"), popmean=0.4, **wide)
    add("ttest_1samp, any law", column("v"), popmean=0.4, **wide, calibration="any")
    add("ttest_ind, less", x, y, alternative="less", **wide)
    add("ttest_rel, Gaussian", column("u"), column("v"), delta=1e-6, **wide)
    add("wilcoxon, less", column("v"), alternative="less")
    found["compare"] = compared_shares
    return found


def compared_shares() -> Any:
    """Return the comparison of two shares that were made apart."""
    pair = np.column_stack([column("u"), column("v") / 5 + 0.4])
    plan = pt.plan_share(bounds=[(0, 1), (0, 1)], locations=3, epsilon=1, delta=1e-6, rng=0)
    first, second = (
        pt.share(half, plan=plan, noise=SimulatedNoise(seed))
        for seed, half in enumerate((pair[:300], pair[300:]))
    )
    return pt.compare(first, second, rng=0)


def shorten(value: Any) -> Any:
    """Return a document with its numbers to nine digits."""
    if isinstance(value, dict):
        return {str(key): shorten(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [shorten(each) for each in value]
    if isinstance(value, np.ndarray):
        return shorten(value.tolist())
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.8e}"
    return value if isinstance(value, (bool, int, str, type(None))) else str(value)


def pinned(result: Any) -> dict[str, Any]:
    """Return the figures a person looks at, and the digest of everything."""
    if hasattr(result, "to_dict"):
        document = shorten(result.to_dict())
    elif hasattr(result, "to_json"):  # a share
        document = shorten({key: json.loads(result.to_json())[key] for key in ("mean", "second")})
    else:  # a release
        names = ("points", "weights")
        document = {name: shorten(getattr(result, name)) for name in names}
    text = json.dumps(document, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    shown = {key: document[key] for key in ("reject", "pvalue", "statistic") if key in document}
    return shown | {"digest": digest}


def run(call: Callable[[], Any]) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pinned(call())


CALLS = calls()


@pytest.mark.slow
@pytest.mark.e2e
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="pinned on x86-64")
def test_golden() -> None:
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    found = json.loads(_in_a_process("--print"))
    assert found.keys() == stored.keys()
    assert {name: found[name] for name in found if found[name] != stored[name]} == {}


def test_every_result_is_pinned() -> None:
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    assert stored.keys() == CALLS.keys()
    named = {name.split(",")[0] for name in CALLS}
    tests = {name for name in pt.__all__ if name.endswith(("_test", "tau", "whitneyu"))}
    reached = {ms[m].function.__name__ for q, ms in METHODS.items() for m in ms}
    assert not tests - named - reached


def _in_a_process(*arguments: str) -> str:
    """Run this module where OpenBLAS takes its code for one processor, whatever there is."""
    found = subprocess.run(
        [sys.executable, "-m", "tests.golden.test_golden", *arguments],
        cwd=STORED.parents[2],
        env=os.environ | {"OPENBLAS_CORETYPE": "Haswell"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


def main() -> None:
    """Write what the cases give now, or print it."""
    if "--print" in sys.argv:
        print(json.dumps({name: run(call) for name, call in CALLS.items()}))
    else:
        text = json.dumps(json.loads(_in_a_process("--print")), indent=1, ensure_ascii=False)
        STORED.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
