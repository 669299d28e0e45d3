"""Write src/privatest/methods/wasserstein.npz: the law of sqrt(n) W of n uniform values.

Run ``python -m tools.wasserstein_law`` (about a minute). W = integral of |F_n - F| has no simple
law for finite n, so it is simulated once, with fixed seeds. The file holds, for each n, upper
confidence limits (four standard errors) of P(sqrt(n) W >= x), so that p-values stay valid.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FILE = Path(__file__).resolve().parent.parent / "src" / "privatest" / "methods" / "wasserstein.npz"
SIZES = (2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 40, 50, 70, 100, 140, 200, 300, 500, 1000)
POINTS = np.arange(321) / 200  # of sqrt(n) W, up to 1.6
_VALUES_HELD = 1 << 21


def draws(n: int) -> int:
    """How many samples: a million, fewer where they are large."""
    return 1 << (20 if n <= 200 else 18)


def simulate(n: int) -> NDArray[np.float64]:
    """Return upper confidence limits of the survival function at POINTS."""
    rng = np.random.default_rng([20220101, n])
    rank = np.arange(n)
    counts = np.zeros(len(POINTS))
    left = draws(n)
    while left:
        size = min(left, max(1, _VALUES_HELD // n))
        above = n * np.sort(rng.random((size, n)), axis=1) - rank  # n (u - F_n just before u)
        below = above - 1
        parts = np.where((above > 0) & (below < 0), above**2 + below**2, np.abs(above + below))
        w = np.sort(0.5 * parts.mean(axis=1) / np.sqrt(n))
        counts += size - np.searchsorted(w, POINTS, side="left")
        left -= size
    share = counts / draws(n)
    limits: NDArray[np.float64] = np.minimum(
        1.0, share + 4 * np.sqrt(share * (1 - share) / draws(n)) + 16 / draws(n)
    )
    return limits


def main() -> None:
    """Simulate every size and write the file."""
    with ProcessPoolExecutor() as pool:
        rows = list(pool.map(simulate, reversed(SIZES)))[::-1]
    np.savez_compressed(
        FILE,
        sizes=np.array(SIZES),
        points=POINTS,
        survival=np.array(rows, dtype=np.float32),
    )


if __name__ == "__main__":
    main()
