"""What a table has beside its numbers: levels and views of columns, holes, weights and groups of rows."""
