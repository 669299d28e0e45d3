"""Releases by points: coefficients of the mean embedding, points and their weights."""
