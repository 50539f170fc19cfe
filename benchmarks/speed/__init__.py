"""Time and memory of training steps and of whole fits: ``python -m benchmarks.speed``."""
