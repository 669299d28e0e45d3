"""The public names: where each is defined, for type checkers and for ``__init__.py``."""

from privatest.client import Client as Client
from privatest.client import connect as connect
from privatest.core.errors import BudgetError as BudgetError
from privatest.core.errors import DataError as DataError
from privatest.core.errors import EngineError as EngineError
from privatest.core.errors import LedgerError as LedgerError
from privatest.core.errors import ParameterError as ParameterError
from privatest.core.errors import PrivacyError as PrivacyError
from privatest.core.errors import PrivatestError as PrivatestError
from privatest.core.errors import ServiceError as ServiceError
from privatest.core.privacy import Adjacency as Adjacency
from privatest.core.privacy import Budget as Budget
from privatest.core.privacy import PermutationSensitivity as PermutationSensitivity
from privatest.core.results import Decision as Decision
from privatest.core.results import Interval as Interval
from privatest.core.results import Outcome as Outcome
from privatest.core.results import adjust as adjust
from privatest.data.databases import scan_sql as scan_sql
from privatest.data.files import scan as scan
from privatest.data.schema import Schema as Schema
from privatest.display.reports import report as report
from privatest.ledger.spending import BudgetBlock as BudgetBlock
from privatest.ledger.spending import budget as budget
from privatest.methods.anova import f_oneway as f_oneway
from privatest.methods.conditional import (
    conditional_independence_test as conditional_independence_test,
)
from privatest.methods.conditional import (
    conditional_randomisation_test as conditional_randomisation_test,
)
from privatest.methods.correlation import kendalltau as kendalltau
from privatest.methods.correlation import spearmanr as spearmanr
from privatest.methods.custom import permutation_test as permutation_test
from privatest.methods.embedding import MomentsRelease as MomentsRelease
from privatest.methods.embedding import StatisticRelease as StatisticRelease
from privatest.methods.embedding import me_permutation_test as me_permutation_test
from privatest.methods.embedding import me_test as me_test
from privatest.methods.embedding import scf_permutation_test as scf_permutation_test
from privatest.methods.embedding import scf_test as scf_test
from privatest.methods.fit_families import ks_family as ks_family
from privatest.methods.hsic import hsic_test as hsic_test
from privatest.methods.ipm import ipm_test as ipm_test
from privatest.methods.ks import ks_1samp as ks_1samp
from privatest.methods.ks import ks_2samp as ks_2samp
from privatest.methods.locations import PrivateChoice as PrivateChoice
from privatest.methods.locations import distinguishing_features as distinguishing_features
from privatest.methods.locations import optimise_frequencies as optimise_frequencies
from privatest.methods.locations import optimise_locations as optimise_locations
from privatest.methods.mean_inference import MeanEstimate as MeanEstimate
from privatest.methods.means import CovarianceEstimate as CovarianceEstimate
from privatest.methods.means import hotelling_1samp as hotelling_1samp
from privatest.methods.means import hotelling_test as hotelling_test
from privatest.methods.means import private_covariance as private_covariance
from privatest.methods.means import private_mean as private_mean
from privatest.methods.means import tost_ind as tost_ind
from privatest.methods.means import tost_rel as tost_rel
from privatest.methods.means import ttest_1samp as ttest_1samp
from privatest.methods.means import ttest_ind as ttest_ind
from privatest.methods.means import ttest_rel as ttest_rel
from privatest.methods.mmd import mmd_test as mmd_test
from privatest.methods.mmd import speaking_features as speaking_features
from privatest.methods.proportions import binom_test as binom_test
from privatest.methods.proportions import private_share as private_share
from privatest.methods.proportions import proportions_test as proportions_test
from privatest.methods.proportions import tost_proportions as tost_proportions
from privatest.methods.quantiles import QuantileEstimate as QuantileEstimate
from privatest.methods.quantiles import hodges_lehmann as hodges_lehmann
from privatest.methods.quantiles import private_median as private_median
from privatest.methods.quantiles import private_quantile as private_quantile
from privatest.methods.ranks import kruskal as kruskal
from privatest.methods.ranks import mannwhitneyu as mannwhitneyu
from privatest.methods.ranks import median_test as median_test
from privatest.methods.regression import linregress as linregress
from privatest.methods.regression import pearsonr as pearsonr
from privatest.methods.shares import Share as Share
from privatest.methods.shares import SharePlan as SharePlan
from privatest.methods.shares import compare as compare
from privatest.methods.shares import compare_all as compare_all
from privatest.methods.shares import plan_share as plan_share
from privatest.methods.shares import share as share
from privatest.methods.signs import sign_test as sign_test
from privatest.methods.signs import symmetry_test as symmetry_test
from privatest.methods.signs import wilcoxon as wilcoxon
from privatest.methods.subsample import sarrm_test as sarrm_test
from privatest.methods.subsample import test_of_tests as test_of_tests
from privatest.methods.tables import chi2_contingency as chi2_contingency
from privatest.methods.tables import chisquare as chisquare
from privatest.synthetic import Estimate as Estimate
from privatest.synthetic import SyntheticData as SyntheticData
from privatest.synthetic import compare_releases as compare_releases
from privatest.synthetic import release as release

__version__: str
__all__: list[str]
