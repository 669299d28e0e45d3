"""Do two samples come from the same distribution?"""

from privatest.two_sample.ipm import ipm_test
from privatest.two_sample.kruskal import kruskal
from privatest.two_sample.ks import ks_2samp
from privatest.two_sample.mmd import mmd_test
from privatest.two_sample.ranks import mannwhitneyu, median_test

__all__ = ["ipm_test", "kruskal", "ks_2samp", "mannwhitneyu", "median_test", "mmd_test"]
