"""Attacks on the package: odd tables and damaged files, each in its own process (``make fuzz``)."""
