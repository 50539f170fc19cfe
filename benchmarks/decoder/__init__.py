"""Benchmarks of the masked decoder."""
