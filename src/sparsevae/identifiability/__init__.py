"""What may be believed of a fit: anchors in the data, a certificate per factor, stability over refits."""

from sparsevae.identifiability.anchors import AnchorGroups, anchors_from_covariance

__all__ = ["AnchorGroups", "anchors_from_covariance"]
