"""What may be believed of a fit: anchors in the data, a certificate per factor, stability over refits."""

from sparsevae.identifiability.anchors import AnchorGroups, anchors_from_covariance
from sparsevae.identifiability.certificate import Certificate, certify
from sparsevae.identifiability.matching import FactorMatch, match_factors
from sparsevae.identifiability.refits import Stability, stability

__all__ = [
    "AnchorGroups",
    "Certificate",
    "FactorMatch",
    "Stability",
    "anchors_from_covariance",
    "certify",
    "match_factors",
    "stability",
]
