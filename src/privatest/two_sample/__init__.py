"""Do two samples come from the same distribution?"""

from privatest.two_sample.embedding import MomentsRelease, StatisticRelease, me_test, scf_test
from privatest.two_sample.embedding_locations import PrivateChoice
from privatest.two_sample.embedding_moments import distinguishing_features
from privatest.two_sample.embedding_optimiser import optimise_frequencies, optimise_locations
from privatest.two_sample.embedding_permutation import me_permutation_test, scf_permutation_test
from privatest.two_sample.ipm import ipm_test
from privatest.two_sample.ks import ks_2samp
from privatest.two_sample.mmd import mmd_test
from privatest.two_sample.ranks import mannwhitneyu, median_test

speaking_features = distinguishing_features  # its former name

__all__ = [
    "MomentsRelease",
    "PrivateChoice",
    "StatisticRelease",
    "distinguishing_features",
    "ipm_test",
    "ks_2samp",
    "mannwhitneyu",
    "me_permutation_test",
    "me_test",
    "median_test",
    "mmd_test",
    "optimise_frequencies",
    "optimise_locations",
    "scf_permutation_test",
    "scf_test",
    "speaking_features",
]
