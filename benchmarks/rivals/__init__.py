"""The package's rivals against what a user would write by hand, and against the sparse VAE's speed."""
