"""Tests of a distribution, or of a family of them."""

from privatest.goodness_of_fit.family import ks_family
from privatest.goodness_of_fit.ks import ks_1samp

__all__ = ["ks_1samp", "ks_family"]
