"""Lossless compression of arrays: bytes that give back every bit.

Logs are mostly numbers on a decimal grid (millimetres, 1e-4 rad) that change smoothly with time. A float64 column whose
values lie on such a grid becomes integers; integers become differences of up to third order where that is smaller; the
differences, small by now, are cut into byte planes and compressed with zstd. Values off the grid (-0.0, NaN, a few odd
ones) are kept apart bit by bit; a column without a grid is treated as the integers that its bits spell.

    array  = version u8, dtype u8, ndim u8, dims u32 x ndim, column ..., zstd(planes of all columns)
    column = grid u8, order u8, width u8, odd u32 [, width of odd values u8]

Integer arithmetic is modulo 2**64 throughout, so that differences can be undone whatever the values.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from radp.runs.errors import BadInput

VERSION = 1
LEVEL, TRIAL_LEVEL = 15, 1  # of zstd: 19 takes four times as long for 1% less
DTYPES = tuple(map(np.dtype, ("?", "<i1", "<u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8")))
MOST_COLUMNS = 64  # an array with a longer last axis is one column
MOST_DIFFERENCES = 3
MOST_BYTES = 2**30  # of an array, also before its planes are joined: zeros take no place in a file, but in memory
NO_GRID = 255  # the integers are the values (or their bits)
BY_MULTIPLYING = 128  # added to d where values are k * 1e-d instead of k / 1e+d
GRIDS = tuple(d + form for d in range(10) for form in (0, BY_MULTIPLYING))
_POWERS = np.array([[10.0 ** (grid % BY_MULTIPLYING)] for grid in GRIDS])
_INVERSE_POWERS = np.array([[10.0 ** -(grid % BY_MULTIPLYING)] for grid in GRIDS])
_MULTIPLIES = np.array([[grid >= BY_MULTIPLYING] for grid in GRIDS])
PROBES = 64
ODD_SHARE = 16  # one value in so many may lie off a grid
NEGATIVE_ZERO = -(2**63)  # bits of -0.0
LARGEST = 2.0**53  # grid indices beyond this are not exact


class CodecError(BadInput):
    """Bytes that are not what the codec wrote."""


def encode_array(array: np.ndarray, level: int = LEVEL) -> bytes:
    """(..., T, C) or (T,), time along T -> bytes. Each of the C columns has its own grid and differences.

    A low `level` of zstd is for what is written once and soon read again.
    """
    dtype = array.dtype.newbyteorder("<") if array.dtype.byteorder == ">" else array.dtype
    if dtype not in DTYPES:
        raise TypeError(f"arrays of {array.dtype} cannot be stored, only bool, integers and floats of up to 8 bytes")
    columns = [_encode_column(column) for column in _columns(array.astype(dtype, copy=False))]
    head = struct.pack(f"<BBB{array.ndim}I", VERSION, DTYPES.index(dtype), array.ndim, *array.shape)
    planes = b"".join(column.planes for column in columns)
    return head + b"".join(column.head for column in columns) + _compress(planes, level)


def decode_array(blob: bytes | memoryview) -> np.ndarray:
    """The array, C-contiguous and writable; CodecError if the bytes are damaged."""
    try:
        return _decode_array(memoryview(blob))
    except CodecError:
        raise
    except (struct.error, ValueError, IndexError, OSError, OverflowError, MemoryError, pa.ArrowException) as error:
        raise CodecError(f"not an encoded array ({error})") from None


def encode_strings(strings: Sequence[str]) -> bytes:
    """A list of strings -> bytes."""
    text = json.dumps(list(strings), separators=(",", ":")).encode()
    return struct.pack("<BI", VERSION, len(text)) + _compress(text, LEVEL)


def decode_strings(blob: bytes | memoryview) -> tuple[str, ...]:
    """The inverse of `encode_strings`."""
    try:
        version, size = struct.unpack_from("<BI", blob)
        _expect_version(version)
        strings = json.loads(_decompress(memoryview(blob)[5:], size))
    except (struct.error, ValueError, OSError, TypeError, RecursionError, pa.ArrowException) as error:
        raise CodecError(f"not an encoded list of strings ({error})") from None
    if not isinstance(strings, list) or not all(type(text) is str for text in strings):
        raise CodecError("not an encoded list of strings (it holds something else)")
    return tuple(strings)


@dataclass(frozen=True)
class _Column:
    head: bytes
    planes: bytes


def _columns(array: np.ndarray) -> list[np.ndarray]:
    """Views (R, T), one per column; time runs along the second axis."""
    if array.size == 0:
        return []
    if array.ndim < 2:
        return [array.reshape(1, -1)]
    if array.shape[-1] <= MOST_COLUMNS:
        return [array[..., c].reshape(-1, array.shape[-2]) for c in range(array.shape[-1])]
    return [array.reshape(-1, array.shape[-1])]


def _encode_column(column: np.ndarray) -> _Column:
    """(R, T) of any dtype -> its header and byte planes: the grid and the order of differences that cost least."""
    grid, index, odd = _on_grid(column) if column.dtype == np.float64 else (NO_GRID, _bits(column), None)
    odd_head, odd_planes = struct.pack("<I", 0), b""
    if odd is not None and odd.any():
        values = _zigzag(_differences(_bits(column[odd])[None], 1))
        planes, width = _planes(values)
        odd_head = struct.pack("<IB", int(odd.sum()), width)
        odd_planes = np.packbits(odd).tobytes() + planes
        index = _fill(index, odd)
    best = None
    for order in range(MOST_DIFFERENCES + 1):
        planes, width = _planes(_zigzag(_differences(index, order)))
        cost = len(_compress(planes, TRIAL_LEVEL))
        if best is not None and cost > best[0]:
            break  # higher orders only add noise
        if best is None or cost < best[0]:
            best = cost, order, width, planes
        if cost == 0:  # nothing but zeros
            break
    assert best is not None
    _, order, width, planes = best
    return _Column(struct.pack("<BBB", grid, order, width) + odd_head, odd_planes + planes)


def _on_grid(column: np.ndarray) -> tuple[int, np.ndarray, np.ndarray | None]:
    """(R, T) float64 -> decimal grid, indices, mask of the odd values that do not lie on it.

    The coarsest grid that holds every number wins, else the one that misses fewest, if these are few.
    """
    column = np.ascontiguousarray(column)
    best: tuple[int, np.ndarray, np.ndarray | None] = (NO_GRID, column.view(np.int64), None)
    best_missed = column.size // ODD_SHARE
    for grid in _likely_grids(column, 2 * best_missed):
        index, odd, missed = _try_grid(column, grid)
        if missed == 0:
            return grid, index, odd
        if missed < best_missed:
            best_missed, best = missed, (grid, index, odd)
    return best


def _likely_grids(column: np.ndarray, most_missed: int) -> list[int]:
    """Grids that miss, as some of its values tell, about `most_missed` of a column at most; zeros fit every grid."""
    numbers = column[column != 0.0]
    probe = numbers[:: max(1, numbers.size // PROBES)]
    with np.errstate(all="ignore"):
        scaled = np.rint(probe * _POWERS)
        scaled[np.abs(scaled) >= LARGEST] = 0.0
        back = np.where(_MULTIPLIES, scaled * _INVERSE_POWERS, scaled / _POWERS)
    missed = ((back != probe) & np.isfinite(probe)).sum(axis=1)
    return [grid for grid, few in zip(GRIDS, missed * numbers.size <= most_missed * len(probe)) if few]


def _try_grid(values: np.ndarray, grid: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Grid indices, mask of values that they do not give back, and how many of these are numbers other than -0.0."""
    with np.errstate(all="ignore"):
        scaled = np.rint(values * 10.0 ** (grid % BY_MULTIPLYING))
    index = np.where(np.abs(scaled) < LARGEST, scaled, 0.0).astype(np.int64)
    bits = values.view(np.int64)
    odd = _from_grid(index, grid).view(np.int64) != bits
    return index, odd, int(np.count_nonzero(odd & np.isfinite(values) & (bits != NEGATIVE_ZERO)))


def _from_grid(index: np.ndarray, grid: int) -> np.ndarray:
    """int64 grid indices -> float64 values."""
    if grid >= BY_MULTIPLYING:
        return index.astype(np.float64) * 10.0 ** -(grid - BY_MULTIPLYING)
    return index.astype(np.float64) / 10.0**grid


def _fill(index: np.ndarray, odd: np.ndarray) -> np.ndarray:
    """Repeat the value before each odd one, so that it makes no jump; what stands there is written over on reading."""
    last = np.maximum.accumulate(np.where(odd, 0, np.arange(odd.shape[1])), axis=1)
    return np.take_along_axis(index, last, axis=1)


def _bits(array: np.ndarray) -> np.ndarray:
    """Values as int64: integers by value, floats by the integers that their bits spell."""
    array = np.ascontiguousarray(array)
    if array.dtype.kind == "f":
        array = array.view(f"<i{array.dtype.itemsize}")
    return array.view(np.int64) if array.dtype == np.uint64 else array.astype(np.int64)


def _from_bits(bits: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "f":
        return bits.astype(f"<i{dtype.itemsize}").view(dtype)
    return bits.astype(dtype)


def _differences(index: np.ndarray, order: int) -> np.ndarray:
    """(R, T) -> (R, T): differences of that order; the first `order` values of a row are of lower orders."""
    for done in range(order):
        index = np.concatenate((index[:, : done + 1], index[:, done + 1 :] - index[:, done:-1]), axis=1)
    return index


def _undo_differences(index: np.ndarray, order: int) -> np.ndarray:
    for done in reversed(range(order)):
        index[:, done:] = np.cumsum(index[:, done:], axis=1)
    return index


def _zigzag(values: np.ndarray) -> np.ndarray:
    """0, -1, 1, -2 ... -> 0, 1, 2, 3 ...: small numbers of either sign get zero high bytes."""
    return ((values << 1) ^ (values >> 63)).view(np.uint64).ravel()


def _planes(values: np.ndarray) -> tuple[bytes, int]:
    """All first bytes, then all second bytes, ... as many as the largest value needs."""
    width = (int(values.max(initial=0)).bit_length() + 7) // 8
    return values.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width].T.tobytes(), width


def _from_planes(planes: np.ndarray, count: int, width: int) -> np.ndarray:
    """(width * count,) bytes -> (count,) int64, zigzag undone; in the smallest integers that hold `width` bytes."""
    if not width:
        return np.zeros(count, dtype=np.int64)
    size = 1 << (width - 1).bit_length()
    first, *others = planes.reshape(width, count)
    spread = first.astype(f"<u{size}")
    for byte, plane in enumerate(others, 1):
        spread |= plane.astype(spread.dtype) << spread.dtype.type(8 * byte)
    sign = (spread & spread.dtype.type(1)).view(f"<i{size}")
    spread >>= spread.dtype.type(1)
    return (spread.view(sign.dtype) ^ -sign).astype(np.int64, copy=False)


def _decode_array(blob: memoryview) -> np.ndarray:
    version, kind, ndim = struct.unpack_from("<BBB", blob)
    _expect_version(version)
    shape = struct.unpack_from(f"<{ndim}I", blob, 3)
    position = 3 + 4 * ndim
    if math.prod(shape) * DTYPES[kind].itemsize > MOST_BYTES:
        raise CodecError(f"not an encoded array (its shape would be {shape})")
    out = np.empty(shape, dtype=DTYPES[kind])
    columns = _columns(out)
    heads = []
    for _ in columns:
        grid, order, width, odd = struct.unpack_from("<BBBI", blob, position)
        position += 7
        odd_width = blob[position] if odd else 0
        position += odd > 0
        if max(width, odd_width) > 8 or order > MOST_DIFFERENCES:
            raise CodecError("not an encoded array (a column header is damaged)")
        heads.append((grid, order, width, odd, odd_width))
    size = sum(_payload_size(column.size, *head) for column, head in zip(columns, heads))
    payload = np.frombuffer(_decompress(blob[position:], size), dtype=np.uint8)
    for c, head in enumerate(heads):
        used = _payload_size(columns[c].size, *head)
        values = _decode_column(payload[:used], columns[c].shape, out.dtype, *head)
        if len(columns) == 1:
            out.reshape(-1)[:] = values.ravel()
        else:
            out[..., c] = values.reshape(out.shape[:-1])
        payload = payload[used:]
    return out


def _payload_size(count: int, grid: int, order: int, width: int, odd: int, odd_width: int) -> int:
    return count * width + (odd > 0) * ((count + 7) // 8) + odd * odd_width


def _decode_column(
    payload: np.ndarray,
    shape: tuple[int, ...],
    dtype: np.dtype,
    grid: int,
    order: int,
    width: int,
    odd: int,
    odd_width: int,
) -> np.ndarray:
    count = shape[0] * shape[1]
    mask_size = (odd > 0) * ((count + 7) // 8)
    index = _from_planes(payload[mask_size + odd * odd_width :], count, width).reshape(shape)
    index = _undo_differences(index, order)
    values = _from_bits(index, dtype) if grid == NO_GRID else _from_grid(index, grid)
    if odd:
        mask = np.unpackbits(payload[:mask_size], count=count).astype(bool).reshape(shape)
        bits = np.cumsum(_from_planes(payload[mask_size : mask_size + odd * odd_width], odd, odd_width))
        values[mask] = _from_bits(bits, dtype)
    return values


def _expect_version(version: int) -> None:
    if version != VERSION:
        raise CodecError(f"encoded with codec version {version}, this radp reads {VERSION}")


@cache
def _zstd(level: int) -> pa.Codec:
    return pa.Codec("zstd", compression_level=level)


def _compress(data: bytes, level: int) -> bytes:
    return _zstd(level).compress(data, asbytes=True) if data else b""


def _decompress(data: memoryview, size: int) -> bytes:
    if size > MOST_BYTES:
        raise CodecError(f"{len(data)} bytes are said to hold {size}, expected at most {MOST_BYTES}")
    return _zstd(LEVEL).decompress(data, size, asbytes=True) if size else b""
