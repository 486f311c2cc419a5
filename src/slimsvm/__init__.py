"""Kernel support vector machines that train fast on big data and answer fast with few vectors."""

__version__ = "0.1.0"
