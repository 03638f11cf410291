"""Tensors as models declare them and as the Open Inference Protocol writes them."""

from __future__ import annotations

from math import prod
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.serve.modelserver.refused import BadInput

Array: TypeAlias = NDArray[Any]
ANY = -1  # of a shape: as many as are sent

# the protocol's word of a type, and NumPy's
DATATYPES = {
    "BOOL": "bool", "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64",
    "INT8": "int8", "INT16": "int16", "INT32": "int32", "INT64": "int64",
    "FP16": "float16", "FP32": "float32", "FP64": "float64", "BYTES": "object",
}  # fmt: skip
WORDS = {name: word for word, name in DATATYPES.items()}
SENT_AS = {
    "b": "b",
    "i": "iu",
    "u": "iu",
    "f": "fiu",
}  # kinds of JSON's values that a kind of NumPy's takes


class Tensor(msgspec.Struct, frozen=True):
    """An input or output as a model declares it; the first axis is rows where the model takes several."""

    name: str
    datatype: str = "FP32"
    shape: tuple[int, ...] = (ANY, ANY)
    is_open: bool = False  # nobody declared it: further axes may follow, of any type

    def takes(self, shape: tuple[int, ...]) -> bool:
        """Whether data of such a shape fit."""
        if self.is_open:
            return len(shape) >= len(self.shape)
        return len(shape) == len(self.shape) and all(
            want in (ANY, has) for want, has in zip(self.shape, shape, strict=True)
        )


def datatype_of(array: Array) -> str:
    """The protocol's word for what an array holds; texts of any length are BYTES."""
    return WORDS.get(array.dtype.name, "BYTES")


def array_of(
    declared: Tensor, data: object, shape: tuple[int, ...] | None = None, datatype: str = ""
) -> Array:
    """What a client sent for an input, as the model wants it; `shape` where the data may have come flat.

    >>> array_of(Tensor("x", "FP32", (-1, 2)), [1, 2, 3, 4], (2, 2)).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    array = _cast(declared.name, data, datatype or declared.datatype)
    if shape is not None and array.shape != shape:
        if array.size != prod(shape):
            raise BadInput(f"{declared.name}: {array.size} values do not fill the shape {list(shape)}")
        try:
            array = array.reshape(shape)
        except ValueError:  # of no values, with sides beyond what an array can have
            raise BadInput(f"{declared.name}: no array has the shape {list(shape)}") from None
    if not declared.takes(array.shape):
        raise BadInput(f"{declared.name}: shape {list(array.shape)}, where {list(declared.shape)} is taken")
    return array


def _cast(name: str, data: object, datatype: str) -> Array:
    """The data as an array of the type, every value as it was sent: nothing wraps, and no text is a number."""
    dtype = np.dtype(DATATYPES[datatype])
    has_texts = dtype.kind == "O"
    if any((kind is str) != has_texts for kind in _kinds(data)):
        raise BadInput(f"{name}: the data are not {datatype}")
    try:
        sent = np.asarray(data, dtype if has_texts else None)
    except ValueError:  # ragged
        raise BadInput(f"{name}: the data are not {datatype}") from None
    if has_texts:
        if any(type(value) is not str for value in sent.flat):  # ragged, which an array of objects holds
            raise BadInput(f"{name}: the data are not {datatype}")
        return sent
    if sent.dtype.kind not in SENT_AS[dtype.kind] and sent.size:
        raise BadInput(f"{name}: the data are not {datatype}")
    with np.errstate(over="ignore", invalid="ignore"):
        cast = sent.astype(dtype, copy=False)
    kept = np.isfinite(cast) if dtype.kind == "f" else cast == sent
    if not kept.all():
        raise BadInput(f"{name}: a value is beyond {datatype}")
    return cast


def _kinds(data: object) -> set[type]:
    """What nested data are of, known before NumPy lays them out: there each text takes as much as the longest."""
    kinds: set[type] = set()
    level = [data]
    while level:
        found = set(map(type, level))
        kinds |= found - {list}
        level = [one for inner in level if type(inner) is list for one in inner] if list in found else []
    return kinds
