"""Private groups by swapping labels within pairs: less sensitive than permuting all labels.

Rows come in a secret order, and rows 0 and 1, 2 and 3, ... make pairs (a, b). With labels g in
{0, 1}, T = |(1/N) sum over pairs of (g_a - g_b)(f(x_a) - f(x_b))|, and the null is made by
swapping the two labels of a pair, which turns the sign of its term. Only pairs with two labels
speak, so under the null hypothesis T is sqrt 2 larger than (n m/N²) MMD; but a permutation never
parts a row from its pair, so that permuted statistics move no further than the observed one.
Proof: docs/proofs/private-groups.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.core.privacy import PermutationSensitivity
from privatest.core.secret_order import secret_pair_bins
from privatest.data.domain import Domain
from privatest.data.samples import TwoSamples
from privatest.kernels.features import FeatureMaps
from privatest.kernels.kernels import UNIT_ROUNDOFF, Kernel, gram_roundings, grams
from privatest.kernels.sums import quadratic_forms, sum_rows
from privatest.statistics.bin_sums import Pairs, block_additions, in_secret_bins
from privatest.statistics.bins import (
    feature_rounding,
    one_below_other,
    parallel,
    summation_depth,
    tiles,
)
from privatest.statistics.cells import PlacedLine, bin_sums, from_extremes
from privatest.statistics.ipm import LineMetric

__all__ = [
    "SWAP_BINS",
    "pair_bin_sizes",
    "pair_swaps_sensitivity",
    "permuted_swaps_cells",
    "permuted_swaps_exact",
    "permuted_swaps_features",
    "permuted_swaps_line",
    "permuted_swaps_streamed",
    "swap_signs",
]

SWAP_BINS = 512  # bins of pairs, which are swapped together
_GRAM_TILE = 512
_STEPS_HELD = 64  # of a walk, at a time: sums fit into a byte
_DOUBLING = (1, 2, 4, 8, 16, 32)
_MOST = np.int8(127)  # of a byte
_WEIGHTINGS = 512  # that walk at a time: they stay in the cache
_ROUNDED = np.array([4 * UNIT_ROUNDOFF])  # quotients of whole numbers


def pair_swaps_sensitivity(diameter: float, total: int) -> PermutationSensitivity:
    """How far T moves, observed or permuted: diameter/N, ``diameter`` being that of f.

    Notes
    -----
    **Sensitivity** A replaced row (x, g) is in one pair. Next to the other row's label, its own
    makes the term 0 or gives it one sign, whatever it is replaced by; so the term moves by at
    most the diameter (attained). Proof: docs/proofs/private-groups.md.
    """
    return PermutationSensitivity(diameter / total, diameter / total)


@dataclass(frozen=True, slots=True)
class _Swaps:
    """Row weights g_a - g_b and its negative, bins of pairs, and the sign of each bin."""

    weights: NDArray[np.float64]  # one for each row, -1, 0 or 1; a leftover row has 0
    edges: NDArray[np.intp]  # where each bin starts, and the end
    signs: NDArray[np.float64]  # permutations × bins; the first row is as observed

    @classmethod
    def draw(
        cls, labels: NDArray[np.float64], n_permutations: int, rng: np.random.Generator
    ) -> _Swaps:
        """Cut the pairs into bins and draw their signs."""
        total = len(labels)
        edges = np.concatenate([[0], np.cumsum(pair_bin_sizes(total))])
        last = int(edges[-1])
        weights = np.zeros(total)
        weights[0:last:2] = labels[0:last:2] - labels[1:last:2]
        weights[1:last:2] = -weights[0:last:2]
        return cls(weights, edges, swap_signs(len(edges) - 1, n_permutations, rng))

    @property
    def depth(self) -> float:
        """Longest chain of additions: within a bin, and over bins."""
        return summation_depth(int(self.edges[1])) + float(self.signs.shape[1]) + 4.0

    def sums(self, matrix: NDArray[np.float64], edges: NDArray[np.intp]) -> NDArray[np.float64]:
        """Sum weighted rows of ``matrix``, which starts at edges[0], between edges."""
        return sum_rows(matrix, edges - edges[0], self.weights[edges[0] : edges[-1]])


def pair_bin_sizes(total: int) -> list[int]:
    """Return how many rows each bin of pairs has; a leftover row is in none."""
    pairs = total // 2
    size = -(-pairs // SWAP_BINS)
    ends = 2 * np.minimum(np.arange(0, pairs + size, size), pairs)
    return [int(rows) for rows in np.diff(ends)]


def swap_signs(bins: int, n_permutations: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a sign for each bin: first as observed, then at random."""
    signs = np.ones((n_permutations + 1, bins))
    signs[1:] = 2.0 * rng.integers(2, size=signs[1:].shape) - 1.0
    return signs


def permuted_swaps_streamed(
    samples: TwoSamples,
    maps: FeatureMaps,
    n_permutations: int,
    rng: np.random.Generator,
    noise: NoiseSource,
    *,
    pairs: bool,
) -> tuple[NDArray[np.float64], NDArray[np.float64], Pairs | None]:
    """Return T of features (members × permutations), a bound on its error, and secret pairs.

    One pass over the rows, which may be anywhere; ``pairs`` as in :func:`binned_samples`. All rows
    are computed: how many have weight is private, and time would tell.
    """
    total = len(samples.x) + len(samples.y)
    sizes = pair_bin_sizes(total)
    bins = secret_pair_bins(len(samples.x), len(samples.y), [*sizes, total % 2], noise)
    x, y, kept = in_secret_bins(samples, bins, maps, noise, pairs=pairs)
    signs = swap_signs(len(sizes), n_permutations, rng)
    values = []
    for index, (ours, theirs) in enumerate(zip(x, y, strict=True)):
        differences = ours[: 2 * len(sizes) : 2] - theirs[: 2 * len(sizes) : 2]  # mixed pairs
        features = maps.project(index, differences / total)
        values.append(maps.measure(index, signs @ features))
    additions = len(sizes) + 4 + block_additions(maps, total, total, bins[0].count)
    return np.vstack(values), feature_rounding(maps, additions), kept


def permuted_swaps_features(
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    maps: FeatureMaps,
    n_permutations: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return T of features (members × permutations) and a bound on its rounding error.

    Rows come in a secret order. One pass sums weighted features per bin of pairs; a permutation
    then adds up bins with their signs. Rows without weight are computed too: how many there are
    is private, and time would tell.
    """
    return _features(rows, maps, _Swaps.draw(labels, n_permutations, rng))


def _features(
    rows: NDArray[np.float64], maps: FeatureMaps, swaps: _Swaps
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    def tile_sums(tile: tuple[int, NDArray[np.intp]]) -> tuple[int, list[NDArray[np.float64]]]:
        first, edges = tile
        part = slice(edges[0], edges[-1])
        return first, list(maps.binned(rows[part], edges - edges[0], swaps.weights[part]))

    sums: list[NDArray[np.float64]] = []
    work = len(rows) * maps.blocks * 64
    for first, parts in parallel(tile_sums, tiles(swaps.edges), work):
        if not sums:
            sums = [np.zeros((len(swaps.edges) - 1, part.shape[1])) for part in parts]
        for total, part in zip(sums, parts, strict=True):
            total[first : first + len(part)] += part
    values = [
        maps.measure(index, swaps.signs @ maps.project(index, found / len(rows)))
        for index, found in enumerate(sums)
    ]
    return np.vstack(values), feature_rounding(maps, swaps.depth)  # weights have mass <= 1


def permuted_swaps_line(
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    metric: LineMetric,
    n_permutations: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return T of a distance on a line (1 × permutations) and a bound on its rounding error."""
    swaps = _Swaps.draw(labels, n_permutations, rng)
    bin_of_row = np.searchsorted(swaps.edges[1:-1], np.arange(len(rows)), side="right")
    if metric.kind != "wasserstein":  # one line
        order = np.argsort(rows[:, 0], kind="stable")
        ends = np.append(np.diff(rows[order, 0]) > 0, False)  # within ties there is no step
        top, bottom = _walks(swaps, order, bin_of_row[order], ends)
        values = from_extremes(metric.kind, top / len(rows), bottom / len(rows))
        return values[None, :], _ROUNDED

    def weights(order: NDArray[np.intp]) -> Callable[[slice], NDArray[np.float64]]:
        bins, own = bin_of_row[order], swaps.weights[order] / len(rows)
        return lambda chosen: np.take(swaps.signs[chosen], bins, axis=1) * own

    return metric.values(rows, weights, n_permutations + 1)


def _walks(
    swaps: _Swaps, order: NDArray[np.intp], bins: NDArray[np.intp], ends: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how far up and down each weighting's sum over sorted rows gets, at ``ends``.

    Steps are -1, 0 or 1, so that sums over few rows fit into a byte.
    """
    own = swaps.weights[order].astype(np.int8)
    count = len(swaps.signs)

    def part(chosen: slice) -> NDArray[np.int64]:
        signs = np.ascontiguousarray(swaps.signs[chosen].T.astype(np.int8))  # bins × weightings
        base, top, bottom = np.zeros((3, signs.shape[1]), dtype=np.int64)
        for start in range(0, len(order), _STEPS_HELD):
            rows = slice(start, start + _STEPS_HELD)
            sums = signs[bins[rows]] * own[rows, None]
            for width in _DOUBLING:
                sums[width:] += sums[:-width].copy()
            # as much work whatever is tied: rows within ties are put below, or above, all others
            here = ends[rows]
            out_of_play = (len(order) + 128) * (not here.any())  # where all are within ties
            peaks = np.minimum(sums, np.where(here, _MOST, -_MOST)[:, None]).max(axis=0)
            dips = np.maximum(sums, np.where(here, -_MOST, _MOST)[:, None]).min(axis=0)
            np.maximum(top, base + peaks - out_of_play, out=top)
            np.minimum(bottom, base + dips + out_of_play, out=bottom)
            base += sums[-1]
        return np.stack([top, bottom])

    slices = [slice(start, start + _WEIGHTINGS) for start in range(0, count, _WEIGHTINGS)]
    found = np.concatenate(list(parallel(part, slices, count * len(order))), axis=1)
    return found[0], -found[1]


def permuted_swaps_cells(
    lines: Iterable[PlacedLine],
    labels: NDArray[np.float64],
    n_permutations: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean over lines of T from cells (1 × permutations), and a bound on its error."""
    swaps, total = _Swaps.draw(labels, n_permutations, rng), len(labels)
    found, errors = [], []
    for line in lines:
        heights = line.heights(swaps.signs @ bin_sums(line, swaps.edges, swaps.weights))
        found.append(line.distance(heights / total))
        errors.append(line.rounding)
    return np.mean(found, axis=0)[None, :], np.array([max(errors)])


def permuted_swaps_exact(
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    kernels: Sequence[Kernel],
    domain: Domain,
    n_permutations: int,
    rng: np.random.Generator,
    maps: FeatureMaps | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return T (kernels, then members of ``maps``, × permutations) and a bound on its error.

    One pass over the weighted Gram matrix sums it into bins × bins; no N×N matrix is kept.
    """
    swaps = _Swaps.draw(labels, n_permutations, rng)
    cuts = list(tiles(swaps.edges, _GRAM_TILE))
    count = len(swaps.edges) - 1
    blocks = [np.zeros((count, count)) for _ in kernels]
    pairs = [(left, right) for left in cuts for right in cuts if right[1][0] <= left[1][0]]

    def tile_sums(
        pair: tuple[tuple[int, NDArray[np.intp]], tuple[int, NDArray[np.intp]]],
    ) -> list[NDArray[np.float64]]:
        (_, left), (_, right) = pair
        matrices = grams(kernels, rows[left[0] : left[-1]], rows[right[0] : right[-1]], domain)
        return [swaps.sums(swaps.sums(matrix, left).T, right).T for matrix in matrices]

    work = len(rows) ** 2 * len(kernels)
    for (left, right), sums in zip(pairs, parallel(tile_sums, pairs, work), strict=True):
        for block, part in zip(blocks, sums, strict=True):  # left × right
            across = slice(left[0], left[0] + part.shape[0])
            down = slice(right[0], right[0] + part.shape[1])
            block[across, down] += part
            if left[1][0] != right[1][0]:
                block[down, across] += part.T
    squares = np.array([quadratic_forms(block, swaps.signs) for block in blocks])
    squares /= len(rows) ** 2
    # |error of w'Kw| <= (sum |w|)² times the error of an entry and of its sum; sum |w| <= N
    errors = np.array(gram_roundings(kernels, domain)) + 2 * swaps.depth * UNIT_ROUNDOFF
    exact = np.sqrt(np.maximum(squares, 0.0)), np.sqrt(errors)
    return exact if maps is None else one_below_other(exact, _features(rows, maps, swaps))
