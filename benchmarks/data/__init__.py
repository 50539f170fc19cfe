"""Time and memory of the loaders and of the ranking measures: ``python -m benchmarks.data``."""
