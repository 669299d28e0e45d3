"""What happened (events), what it costs (composition), and which sums may grant (adaptive)."""

from privatest.accounting.adaptive import largest_rho, zcdp_delta, zcdp_epsilon, zcdp_price
from privatest.accounting.composition import compose, fits, most_repeats
from privatest.accounting.events import (
    Approximate,
    Event,
    Gaussian,
    Laplace,
    Pure,
    covers,
    event_from_dict,
    event_of,
    event_to_dict,
    gaussian_epsilon,
    price,
)

__all__ = [
    "Approximate",
    "Event",
    "Gaussian",
    "Laplace",
    "Pure",
    "compose",
    "covers",
    "event_from_dict",
    "event_of",
    "event_to_dict",
    "fits",
    "gaussian_epsilon",
    "largest_rho",
    "most_repeats",
    "price",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_price",
]
