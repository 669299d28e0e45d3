"""Counts of people in categories: tests of tables and of shares."""
