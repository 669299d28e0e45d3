"""Shared by tests of groups: sizes, which of them are public, and private groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Adjacency
from privatest.core.validation import one_of
from privatest.data.encoding import Sample, TwoSamples
from privatest.mechanisms.permutation import Release

NULL_HYPOTHESIS = "the two samples come from the same distribution"

PublicGroups = Literal["one", "both"]

Relabel = Literal["auto", "permute", "swap"]
"""How private groups are relabelled: among all rows, or within pairs of rows."""

RELABELS: tuple[str, ...] = get_args(Relabel)

# Swaps have less noise, permutations a smaller statistic under the null hypothesis: their power
# is the same near this N epsilon² (benchmarks/power/groups.py).
_EQUAL_POWER: dict[Release, float] = {"decision": 250.0, "pvalue": 350.0}
# Permuting labels takes 64 times as long, and all rows have to be held: beyond this it is not done.
_MOST_PERMUTED = 2_000_000


def check_relabel(relabel: Relabel, adjacency: Adjacency) -> None:
    """Refuse a way of relabelling that there is not, or public groups that name one."""
    one_of("relabel", relabel, RELABELS)
    if relabel != "auto" and adjacency != "row":
        raise ParameterError("relabel needs adjacency='row': it is for private groups.")


def swaps_labels(
    relabel: Relabel, total: int, rows_per_person: int, epsilon: float, release: Release
) -> bool:
    """Return whether labels are swapped in pairs: a rule of public numbers only."""
    if relabel != "auto":
        return relabel == "swap"
    strength = total * (epsilon / rows_per_person) ** 2
    return strength < _EQUAL_POWER[release] or total > _MOST_PERMUTED


def labelled_rows(
    x: NDArray[np.float64], y: NDArray[np.float64], noise: NoiseSource
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return all rows in a secret order, and a label for each: 1 for x, 0 for y."""
    order = noise.permutation(len(x) + len(y))
    return np.vstack([x, y])[order], (order < len(x)).astype(np.float64)


def check_sizes(samples: TwoSamples, adjacency: Adjacency) -> None:
    """Refuse samples that are too small, by public sizes only: a private group may be empty."""
    n, m = len(samples.x), len(samples.y)
    if adjacency == "row":
        if n + m < 4:
            raise DataError("the two groups must have at least 4 rows together.")
    elif min(n, m) < 2:
        raise DataError("each sample must have at least 2 rows.")


def public_sizes(samples: TwoSamples, adjacency: Adjacency) -> tuple[int, int]:
    """Return the sample sizes; for private groups the halves of their total."""
    n, m = len(samples.x), len(samples.y)
    return ((n + m) // 2, (n + m) - (n + m) // 2) if adjacency == "row" else (n, m)


def shown_sizes(samples: TwoSamples, adjacency: Adjacency) -> dict[str, int]:
    """Return the sizes that a result may show."""
    n, m = len(samples.x), len(samples.y)
    return {"N": n + m} if adjacency == "row" else {"n": n, "m": m}


def group_facts(
    samples: Sequence[Sample],
    adjacency: Adjacency,
    method: str,
    null: str,
    parameters: dict[str, Any],
) -> dict[str, Any]:
    """Return the public fields of a result on groups of public sizes."""
    sizes = list(map(len, samples))
    names = ["n", "m"] if len(sizes) == 2 else [f"n{k}" for k in range(1, len(sizes) + 1)]
    return {
        "adjacency": adjacency,
        "method": method,
        "null_hypothesis": null,
        "sizes": dict(zip(names, sizes, strict=True)),
        "parameters": parameters,
        "rows_per_person": samples[0].rows_per_person,
    }
