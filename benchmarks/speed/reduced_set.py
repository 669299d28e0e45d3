"""Speed of Algorithm 2: 100,000 rows, 10,000 random features, 1000 points; and a lattice.

Seconds are of the processor, so that others on the machine do not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benchmarks.measure import peak_memory, save, start
from benchmarks.report import print_table
from privatest.core.privacy import Budget
from privatest.data.schema import Domain
from privatest.noise import SecureNoise
from privatest.numerics.kernels import Kernel
from privatest.synthetic.fourier import NoisyFeatures, noisy_features, reduced_set

BOX = Domain((0, 0))
KERNEL = Kernel("gaussian", 0.047)


def seconds(call: Callable[[], object]) -> float:
    """Processor time of one call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def main() -> None:
    """Measure, print the table, write the JSON."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(0.3, 0.7, size=(10, 2))
    rows = centres[rng.integers(10, size=100_000)] + 0.02 * rng.normal(size=(100_000, 2))
    table: list[list[object]] = []
    noise = SecureNoise()
    table.append(
        ["noise, 20,000 entries", seconds(lambda: noise.gaussian(np.zeros(20_000), 1e-4, -64)), ""]
    )
    for kind, count in (("lattice", 10_000), ("random", 5_000), ("random", 10_000)):

        def release(kind: str = kind, count: int = count) -> NoisyFeatures:
            return noisy_features(
                rows,
                kernel=KERNEL,
                domain=BOX,
                n_frequencies=count,
                budget=Budget(1, "1e-6"),
                frequencies=kind,  # type: ignore[arg-type]
                rng=0,
            )

        start = time.process_time()
        noisy = release()
        middle = time.process_time()
        memory = peak_memory(lambda noisy=noisy: reduced_set(noisy, domain=BOX, n_points=1_000))  # type: ignore[misc]
        end = time.process_time()
        name = f"{kind}, {noisy.mean.size:,} features"
        table.append([f"{name}: noisy mean", middle - start, ""])
        table.append([f"{name}: 1000 points, {memory / 1e6:.0f} MB", end - middle, ""])
        table.append([f"{name}: together", end - start, "below 60"])
        columns = "case", "seconds", "target"
        save("speed-reduced-set", [dict(zip(columns, row, strict=True)) for row in table])
    print_table("Algorithm 2", ["case", "seconds", "asked for"], table)


if __name__ == "__main__":
    start(main, __doc__)
