"""Recovery of known factors: methods, problems, resumable rows, a table and a plot."""
