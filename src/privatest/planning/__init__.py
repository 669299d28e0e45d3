"""How many people, how large an effect, which epsilon, which test: before anything is spent.

Everything here follows from public assumptions: from tables of simulated studies, or from studies
simulated on request. Nobody's data is read, and no budget is spent.
"""

from privatest.planning.plans import Choice, Plan, Prices, Recommendation
from privatest.planning.recommendation import recommend
from privatest.planning.studies import (
    detectable_effect,
    epsilon_needed,
    expected_power,
    price_of_privacy,
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
