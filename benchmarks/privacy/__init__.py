"""Attacks on what noise does not cover."""
