"""Quantiles of one column and the shift between two samples, with intervals."""

from privatest.quantiles.quantile import QuantileEstimate, private_median, private_quantile
from privatest.quantiles.shift import hodges_lehmann

__all__ = ["QuantileEstimate", "hodges_lehmann", "private_median", "private_quantile"]
