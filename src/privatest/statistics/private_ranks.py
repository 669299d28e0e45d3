"""Mann–Whitney's statistic where a person's group is part of the row.

J = sum of g_i (2 rank_i - N - 1) = 2U - nm, with labels g in {0, 1}. The null is made by permuting
labels, so that neither the widths nor a law need the group sizes. They still matter: if nearly
all rows are in one group, a row of the other can pass all of them. T = v J/N², with v a little
smaller for unequal groups, is two fifths less sensitive than J, and permutations leave v as it is.
Proof: docs/proofs/private-groups.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privatest.core.privacy import PermutationSensitivity
from privatest.kernels.kernels import UNIT_ROUNDOFF

__all__ = ["permuted_ranks", "private_ranks_sensitivity"]

_BLOCKS = 1024  # up to so many rows single labels are permuted
_SLOPE = 5 / 6  # of v = 1 - slope |n/N - 1/2|: least noise in all for equal groups


def private_ranks_sensitivity(total: int) -> PermutationSensitivity:
    """How far T moves: (29/24)/N observed, (20/9)/N permuted.

    Notes
    -----
    **Sensitivity** A replaced value passes at most all rows of the other group; a replaced label
    moves J by at most N - 1, and v by 5/(6N). A permutation separates value and label, so that
    both happen at once. The bound is widened for the rounding of v J/N², which is at most 1/4.
    Proof: docs/proofs/private-groups.md.
    """
    exact = PermutationSensitivity(29 / 24 / total, 20 / 9 / total)
    return exact.widened(4 * UNIT_ROUNDOFF)


def permuted_ranks(
    values: NDArray[np.float64],
    labels: NDArray[np.float64],
    n_permutations: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return T, observed and for random permutations of labels.

    Rows come in a secret order, which breaks ties. Labels are permuted in blocks, position by
    position; leftover rows keep theirs. J is an integer, and exact for N below 10^7.
    """
    total = len(values)
    heights = np.empty(total)
    heights[np.argsort(values, kind="stable")] = 2.0 * np.arange(total) - (total - 1)
    size = -(-total // _BLOCKS)
    blocks = total // size
    table, raised = (
        part[: blocks * size].reshape(blocks, size).astype(np.float64) for part in (labels, heights)
    )
    products = table @ raised.T  # labels' block × heights' block
    shuffles = np.tile(np.arange(blocks), (n_permutations + 1, 1))
    rng.permuted(shuffles[1:], axis=1, out=shuffles[1:])
    sums = products[shuffles, np.arange(blocks)].sum(axis=1)
    sums += labels[blocks * size :] @ heights[blocks * size :]
    share = 1 - _SLOPE * abs(float(labels.mean()) - 0.5)
    scaled: NDArray[np.float64] = share * sums / total**2
    return scaled
