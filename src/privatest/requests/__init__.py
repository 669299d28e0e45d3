"""Requests: questions about data in public words, their methods, and how they are answered."""
