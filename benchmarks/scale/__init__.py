"""Tables larger than memory: peak memory, rate and quality of fits from disk."""
