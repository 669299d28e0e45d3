"""Make any test private: run it on disjoint subsets and add noise to the rejections."""

from privatest.any_test.sarrm import sarrm_test
from privatest.any_test.tot import test_of_tests

__all__ = ["sarrm_test", "test_of_tests"]
