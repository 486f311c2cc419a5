"""Naive twins: the same results by the shortest possible code."""
