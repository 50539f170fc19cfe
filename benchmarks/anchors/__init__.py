"""Practical anchors of the sparse VAE and of rotations with as many factors."""
