"""Tests of pairs: before and after, left and right."""

from privatest.paired.signed import sign_test, symmetry_test, wilcoxon

__all__ = ["sign_test", "symmetry_test", "wilcoxon"]
