"""Kernels and feature maps, and how far each can reach on a public box."""
