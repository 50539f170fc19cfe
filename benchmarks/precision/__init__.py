"""Held-out score of fits in bfloat16 against float32: ``python -m benchmarks.precision``."""
