"""How many people, how large an effect, which epsilon, which test: before anything is spent.

Everything here follows from public assumptions: from tables of simulated studies, or from studies
simulated on request. Nobody's data is read, and no budget is spent.
"""

from privatest.planning.answers import Choice, Plan, Recommendation
from privatest.planning.prices import Prices, price_of_privacy
from privatest.planning.recommending import recommend
from privatest.planning.sizes import (
    detectable_effect,
    epsilon_needed,
    expected_power,
    sample_size,
)

__all__ = [
    "Choice",
    "Plan",
    "Prices",
    "Recommendation",
    "detectable_effect",
    "epsilon_needed",
    "expected_power",
    "price_of_privacy",
    "recommend",
    "sample_size",
]
