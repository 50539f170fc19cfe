"""Fitted estimators on disk: tensors as safetensors, everything else as JSON, no pickle.

A saved model is a directory of two files. ``model.safetensors`` has every array; ``model.json`` has the
class, the parameters, what was fitted, and the checksum of the arrays. An estimator gives what it has learnt
by ``saved_state()`` and takes it back by ``restore_state(state)``; nothing here knows a model's name.
"""

from sparsevae.persistence.directory import (
    FORMAT_VERSION,
    SavedModelError,
    SavedModelNotFoundError,
    load_estimator,
    pack_estimator,
    save_estimator,
    unpack_estimator,
)
from sparsevae.persistence.replacement import replacing, replacing_directory

__all__ = [
    "FORMAT_VERSION",
    "SavedModelError",
    "SavedModelNotFoundError",
    "load_estimator",
    "pack_estimator",
    "replacing",
    "replacing_directory",
    "save_estimator",
    "unpack_estimator",
]
