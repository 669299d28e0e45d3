"""Power by simulation, on made-up or public data: no private computation, and no budget.

Noise is simulated from a seed. Nothing here may be given private data.
"""

from privatest.planning.samplers import (
    Sampler,
    atoms,
    custom,
    dependence,
    heavy_tails,
    mixture,
    proportions,
    resample,
    scale,
    shape,
    shift,
    tables,
)
from privatest.planning.simulation import Power, power

__all__ = [
    "Power",
    "Sampler",
    "atoms",
    "custom",
    "dependence",
    "heavy_tails",
    "mixture",
    "power",
    "proportions",
    "resample",
    "scale",
    "shape",
    "shift",
    "tables",
]
