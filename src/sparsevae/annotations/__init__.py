"""What a table has beside its numbers: levels of columns, holes, weights and groups of rows."""
