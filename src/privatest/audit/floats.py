"""Values that are no ordinary numbers, and the low-order bits of what is released.

A neighbour with a missing value, an infinity, a subnormal or a number beyond 2^60 must be answered
as the other one is. And noisy numbers of both must lie on the same grid: noise that is added to a
float leaves low-order bits that tell the float (Mironov 2012).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.audit.cases import Case
from privatest.audit.coupling import COUPLINGS
from privatest.audit.distinguishing import by_bits
from privatest.audit.findings import Finding
from privatest.audit.neighbours import Pair, strange_pairs, structured_pairs
from privatest.audit.replay import TOLERANCE, Replayed, replay
from privatest.audit.schemas import SCHEMAS
from privatest.core.errors import PrivatestError
from privatest.core.noise import SimulatedNoise

if TYPE_CHECKING:
    from privatest.data.schema import Schema

__all__ = ["attack_floats"]

_DRAWS = 4000


def attack_floats(case: Case, seed: int) -> Finding:
    """Try strange values on one side, arrays of every kind, and low-order bits."""
    tried = 0
    for pair, strange in _strange(case, seed):
        tried += 1
        told = _worst_of(strange, pair)
        if told:
            return Finding("floats", False, f"with {pair.style}: {told}", {"values": tried})
    refused = _kinds(case)
    if refused:
        return Finding("floats", False, refused, {"values": tried})
    epsilon, delta = case.budget.as_floats
    bits = by_bits(_far_apart(case, seed), runs=_DRAWS, delta=delta, most=epsilon)
    words = f"{tried} strange values; bits tell epsilon >= {bits.epsilon:.2f}"
    numbers = {"values": tried, "bits_epsilon": bits.epsilon, "event": bits.event}
    return Finding("floats", bits.epsilon <= epsilon, words, numbers)


def _strange(case: Case, seed: int) -> Iterator[tuple[Pair, Case]]:
    asked = case.other("missing")
    for pair in strange_pairs(asked.schema, asked.rows, seed, asked.columns):
        yield pair, asked


def _worst_of(case: Case, pair: Pair) -> str:
    """Return what is wrong with a pair under every coupling, "" if one of them fits."""
    told = ""
    for how in COUPLINGS:
        found = replay(case, pair, how, losses=False)
        if not found.path and found.ratio <= 1 + TOLERANCE:
            return ""
        told = told or found.path or f"numbers move {found.ratio:.3g} times what is declared"
    return told


def _far_apart(case: Case, seed: int) -> Replayed:
    """Return a pair whose numbers differ and are near 0, where floats are finest."""
    pairs = list(structured_pairs(case.schema, case.rows, seed))
    found = [replay(case, pair, losses=False) for pair in (*pairs[:3], *pairs[-6:])]

    def far(each: Replayed) -> tuple[bool, bool, float]:
        values = [np.abs(m.values).min(initial=np.inf) for m in each.calls[0]]
        return not each.path, each.ratio > 0, -min(values, default=np.inf)

    return max(found, key=far)


# --- arrays of every kind -------------------------------------------------------------------


def _kinds(case: Case) -> str:
    """Return which kind of array is refused for one neighbour, "" if none is."""
    call = _TAKES_ARRAYS.get(case.name)
    if call is None:
        return ""
    schema = SCHEMAS["missing"].select(["x"])
    for kind, arrays in _arrays().items():
        states = []
        for array in arrays:
            try:
                call(array, schema)
                states.append("answered")
            except PrivatestError as error:
                states.append(type(error).__name__)
        if len({*states}) > 1:
            return f"{kind} arrays: one neighbour is {states[0]}, the other {states[1]}"
    return ""


def _arrays() -> dict[str, tuple[Any, Any]]:
    """Return pairs of arrays of one column; the second has something missing or extreme."""
    import pandas as pd  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    plain = [0.25, 0.5, 0.75] * 4
    gap: list[float | None] = [None, *plain[1:]]
    mask = [True] + [False] * 11
    return {
        "longdouble": (
            np.array(plain, np.longdouble),
            np.array([1e300, *plain[1:]], np.longdouble),
        ),
        "masked": (np.ma.array(plain, mask=[False] * 12), np.ma.array(plain, mask=mask)),
        "pandas nullable": (pd.Series(plain, dtype="Float64"), pd.Series(gap, dtype="Float64")),
        "Arrow": (pa.table({"x": plain}), pa.table({"x": pa.array(gap, pa.float64())})),
        "subnormal": (np.array(plain), np.array([5e-324, *plain[1:]])),
        "not a number": (np.array(plain), np.array([np.nan, *plain[1:]])),
        "beyond 2^60": (np.array(plain), np.array([2.0**60 + 2**10, *plain[1:]])),
    }


def _mean(x: Any, schema: Schema) -> Any:
    from privatest.methods.means import private_mean  # noqa: PLC0415

    return private_mean(x, bounds=schema, epsilon=1, rng=1, noise=SimulatedNoise(1))


def _median(x: Any, schema: Schema) -> Any:
    from privatest.methods.quantiles import private_median  # noqa: PLC0415

    return private_median(x, bounds=schema, epsilon=1, noise=SimulatedNoise(1))


def _sign(x: Any, schema: Schema) -> Any:
    from privatest.methods.signs import sign_test  # noqa: PLC0415

    return sign_test(x, bounds=schema, epsilon=1, noise=SimulatedNoise(1))


def _fit(x: Any, schema: Schema) -> Any:
    from privatest.methods.ks import ks_1samp  # noqa: PLC0415

    return ks_1samp(x, "uniform", bounds=schema, epsilon=1, rng=1, noise=SimulatedNoise(1))


def _two_samples(x: Any, schema: Schema) -> Any:
    from privatest.methods.mmd import mmd_test  # noqa: PLC0415

    options: dict[str, Any] = {"epsilon": 1, "n_permutations": 19, "rng": 1}
    return mmd_test(x, x, bounds=schema, noise=SimulatedNoise(1), **options)


_TAKES_ARRAYS: dict[str, Callable[[Any, Schema], Any]] = {
    "mean/moments": _mean,
    "python/private_median": _median,
    "paired/sign": _sign,
    "fit/distribution": _fit,
    "two-sample/mmd, public groups": _two_samples,
}
