"""The features of a class as bytes: a small safetensors file in the types of a bank's (docs/banks.md)."""

import zlib

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from tenet.banks.stored_class import FEATURES, StoredClass
from tenet.errors import DataError, InputError
from tenet.structures import ClassFeatures


def pack(stored: StoredClass) -> bytes:
    """Of a class whose features are rounded already."""
    parts = {name: np.ascontiguousarray(stored.part(name)) for name in FEATURES}
    if stored.objectness_size:
        parts["objectness"] = np.ascontiguousarray(stored.part("objectness"))
    ranks = stored.ranks()
    if ranks is not None:
        parts["ranks"] = np.array(ranks, np.int64)
    return save(parts)


def unpack(packed: bytes, checksum: int, name: str) -> ClassFeatures:
    """The features of class `name`; bytes that changed since they were written are an error."""
    if zlib.crc32(packed) != checksum:
        raise DataError(f"{name}: expected its features as they were written, but the store is damaged")
    try:
        parts = load(packed)
        ranks, closed_form = parts.pop("ranks", None), parts.pop("objectness", None)
        features = {key: value.astype(np.float32) for key, value in parts.items()}
        return ClassFeatures(**features, closed_form=closed_form, ranks=ranks)
    except (SafetensorError, InputError, TypeError) as error:
        raise DataError(f"{name}: expected features of a class in the store, got something else") from error
