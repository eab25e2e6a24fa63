# SPDX-License-Identifier: Apache-2.0
"""Arrow arrays of numpy's numbers, and the reverse, without pandas.

`pyarrow.array`, `pyarrow.scalar` and `to_numpy` import pandas where it is installed, to find out
whether it has anything to do with their arguments. That takes some 30 MiB in each worker, so the
readers of messages do without these three.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def of_numbers(
    values: NDArray[Any], *, kind: pa.DataType | None = None, valid: NDArray[np.bool_] | None = None
) -> pa.Array:
    """Returns an array of these numbers or truth values, which copies no numbers that lie in a row.

    `kind` is an Arrow type that holds the numbers in the same way, such as a timestamp. An element
    is null where `valid` is false.
    """
    present = None if valid is None else _bits(valid)
    if values.dtype == np.bool_:
        return pa.Array.from_buffers(pa.bool_(), len(values), [present, _bits(values)])
    kind = pa.from_numpy_dtype(values.dtype) if kind is None else kind
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, len(values), [present, data])


def of_texts(texts: Iterable[str | None]) -> pa.StringArray:
    """Returns an array of these texts. Raises UnicodeEncodeError for a lone surrogate."""
    given = list(texts)
    valid = None
    if None in given:
        valid = np.array([text is not None for text in given], np.bool_)
    return of_bytes([b"" if text is None else text.encode() for text in given], valid).cast(
        pa.string()
    )


def of_bytes(strings: Sequence[bytes], valid: NDArray[np.bool_] | None = None) -> pa.BinaryArray:
    """Returns an array of these byte strings; an element is null where `valid` is false."""
    ends = np.zeros(len(strings) + 1, np.int32)
    np.cumsum([len(each) for each in strings], out=ends[1:])
    present = None if valid is None else _bits(valid)
    buffers = [present, pa.py_buffer(ends), pa.py_buffer(b"".join(strings))]
    return pa.Array.from_buffers(pa.binary(), len(strings), buffers)


def numbers_of(array: pa.Array) -> NDArray[Any]:
    """Returns the signed integers, times or truth values of an array without nulls.

    Raises ValueError if there is a null.
    """
    if array.null_count:
        raise ValueError(f"{array.null_count} of {len(array)} elements are null")
    data = array.buffers()[1]
    start, end = array.offset, array.offset + len(array)
    if pa.types.is_boolean(array.type):
        bits = np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8)
        return np.unpackbits(bits, count=end, bitorder="little")[start:].view(np.bool_)
    kind = np.dtype(f"i{array.type.bit_width // 8}")
    return np.frombuffer(data, kind)[start:end] if data else np.empty(0, kind)


def _bits(flags: NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))
