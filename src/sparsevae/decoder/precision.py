"""The precision of matrix products: what a user may ask for and what a device can do."""

from __future__ import annotations

import functools
import warnings

import torch

from sparsevae.exceptions import ParameterError

__all__ = ["PRECISIONS", "bfloat16_supported", "usable_precision"]

PRECISIONS = ("float32", "bfloat16")


def bfloat16_supported(device: torch.device | str) -> bool:
    """Tell whether a device multiplies bfloat16 matrices in hardware; emulated they gain nothing."""
    return _bfloat16_supported(torch.device(device).type)


def usable_precision(precision: str, device: torch.device) -> str:
    """Return the precision, or "float32" with a warning where the device has no bfloat16.

    Parameters
    ----------
    precision : {"float32", "bfloat16"}
    device : torch.device

    Returns
    -------
    str
    """
    if precision not in PRECISIONS:
        raise ParameterError(
            f"Expected precision to be one of {', '.join(map(repr, PRECISIONS))}; got {precision!r}."
        )
    if precision == "bfloat16" and not bfloat16_supported(device):
        warnings.warn(
            f"precision='bfloat16' needs a device that multiplies bfloat16 matrices, and this {device.type} "
            "does not; decoding in float32. Pass precision='float32' to silence this.",
            UserWarning,
            stacklevel=3,
        )
        return "float32"
    return precision


@functools.cache
def _bfloat16_supported(device_type: str) -> bool:
    if device_type == "cuda":
        return torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False)
    if device_type == "cpu" and hasattr(torch.cpu, "get_capabilities"):
        capabilities = torch.cpu.get_capabilities()
        return any(capabilities.get(name, False) for name in ("avx512_bf16", "amx_bf16", "bf16"))
    return device_type == "cpu" and torch.cpu._is_avx512_bf16_supported()
