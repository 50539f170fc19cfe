"""Measurements of speed and statistical quality; each folder is a command, ``python -m benchmarks.NAME``."""
