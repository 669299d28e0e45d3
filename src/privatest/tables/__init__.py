"""Tests of counts: proportions and tables."""
