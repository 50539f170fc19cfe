"""Fitted estimators on disk: tensors as safetensors, everything else as JSON, no pickle.

A saved model is a directory of two files. ``model.safetensors`` has every array; ``model.json`` has the
class, the parameters, what was fitted, and one checksum of both files. An estimator gives what it has learnt
by ``saved_state()`` and takes it back by ``restore_state(state)``; nothing here knows a model's name.
"""

from sparsevae.persistence.arrays import writing_npy
from sparsevae.persistence.checkpoints import (
    CheckpointFolder,
    has_writer,
    last_checkpoint,
    open_checkpoints,
    remove_checkpoints,
)
from sparsevae.persistence.directory import (
    FORMAT_VERSION,
    SavedModelError,
    SavedModelNotFoundError,
    load_estimator,
    pack_estimator,
    save_estimator,
    unpack_estimator,
)
from sparsevae.persistence.place import Place, keep_elsewhere, recover_place, short_name, take_place
from sparsevae.persistence.replacement import (
    check_writable,
    finish_replacement,
    replacing,
    replacing_directory,
    replacing_together,
)

__all__ = [
    "FORMAT_VERSION",
    "CheckpointFolder",
    "Place",
    "SavedModelError",
    "SavedModelNotFoundError",
    "check_writable",
    "finish_replacement",
    "has_writer",
    "keep_elsewhere",
    "last_checkpoint",
    "load_estimator",
    "open_checkpoints",
    "pack_estimator",
    "recover_place",
    "remove_checkpoints",
    "replacing",
    "replacing_directory",
    "replacing_together",
    "save_estimator",
    "short_name",
    "take_place",
    "unpack_estimator",
    "writing_npy",
]
