"""Power by simulation, on made-up or public data: no private computation, and no budget.

Noise is simulated from a seed. Nothing here may be given private data.
"""

from privatest.simulation.running import Power, power
from privatest.simulation.samplers import (
    Sampler,
    atoms,
    custom,
    heavy_tails,
    mixture,
    scale,
    shape,
    shift,
)
from privatest.simulation.samplers_resampled import resample
from privatest.simulation.samplers_tables import dependence, proportions, tables

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
