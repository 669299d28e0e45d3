"""Releases by tables: what is measured, the rows that fit it, and means from it."""
