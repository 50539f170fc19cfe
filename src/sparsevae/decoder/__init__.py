"""The masked decoder: the literal loop (the oracle) and the paths that give the same numbers sooner."""

from sparsevae.decoder.blocked import decode_blocked
from sparsevae.decoder.dense import decode_dense, decode_shared
from sparsevae.decoder.dispatch import bfloat16_supported, decode
from sparsevae.decoder.literal import decode_literal
from sparsevae.decoder.module import MaskedDecoder
from sparsevae.decoder.plan import MaskPlan, plan_mask
from sparsevae.decoder.sparse import decode_sparse
from sparsevae.decoder.threads import single_threaded_kernels
from sparsevae.decoder.weights import DecoderWeights

__all__ = [
    "DecoderWeights",
    "MaskPlan",
    "MaskedDecoder",
    "bfloat16_supported",
    "decode",
    "decode_blocked",
    "decode_dense",
    "decode_literal",
    "decode_shared",
    "decode_sparse",
    "plan_mask",
    "single_threaded_kernels",
]
