"""Measurements of speed and of statistical quality; each folder is one command, ``python -m benchmarks.NAME``."""
