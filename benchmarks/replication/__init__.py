"""Which factors come back in another half of the rows: the sparse VAE and simpler methods on real tables."""
