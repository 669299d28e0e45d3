"""Tests of whether two sets of columns depend on each other."""

from privatest.independence.hsic import hsic_test

__all__ = ["hsic_test"]
