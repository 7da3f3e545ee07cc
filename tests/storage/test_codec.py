"""Every array comes back bit for bit; what is smooth and on a grid becomes small; damaged bytes are noticed."""

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from radp.storage.codec import CodecError, decode_array, decode_strings, encode_array, encode_strings
from tests.small_scenarios import assert_same

DTYPES = st.sampled_from(["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"])
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9)
GRIDS = {"round": lambda k, d: np.round(k / 10.0**d, d), "multiply": lambda k, d: k * 10.0**-d}


@given(DTYPES.flatmap(lambda dtype: hnp.arrays(dtype, SHAPES)))
@settings(max_examples=300, deadline=None)
def test_any_array_comes_back(array):
    assert_same(decode_array(encode_array(array)), array)


@given(hnp.arrays("f8", SHAPES, elements=st.sampled_from([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 5e-324, 1e300])))
@settings(deadline=None)
def test_special_values_come_back(array):
    assert_same(decode_array(encode_array(array)), array)


@given(
    hnp.arrays("i8", st.tuples(st.integers(1, 80), st.integers(1, 3)), elements=st.integers(-(2**40), 2**40)),
    st.integers(0, 9),
    st.sampled_from(list(GRIDS)),
    st.lists(st.tuples(st.integers(0, 79), st.sampled_from([-0.0, np.nan, 1 / 3, 2.0**60])), max_size=3),
)
@settings(max_examples=200, deadline=None)
def test_grid_values_with_odd_ones_among_them_come_back(index, decimals, grid, odd):
    array = GRIDS[grid](index, decimals)
    for row, value in odd:
        array[row % len(array), 0] = value
    assert_same(decode_array(encode_array(array)), array)


@pytest.mark.parametrize(
    "array",
    [
        np.array([2**63 - 1, -(2**63), 0, -1]),
        np.array([2**64 - 1, 0, 2**63], dtype=np.uint64),
        np.arange(12.0).reshape(3, 4).T,
        np.arange(24.0)[::-2],
        np.arange(5, dtype=">i4").astype("i4"),
        np.zeros((3, 200)),
        np.array(1.5),
    ],
)
def test_corners(array):
    assert_same(decode_array(encode_array(array)), np.ascontiguousarray(array).reshape(array.shape))


def test_big_endian_arrays_come_back_by_value():
    array = np.arange(6, dtype=">f8").reshape(3, 2) / 8
    back = decode_array(encode_array(array))
    assert back.dtype == np.float64 and np.array_equal(back, array)


def test_the_result_can_be_written_to():
    back = decode_array(encode_array(np.zeros((4, 3))))
    back[0, 0] = 1.0


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([1j]), np.array([None]), np.zeros(2, "M8[s]")])
def test_other_types_are_refused(array):
    with pytest.raises(TypeError, match="cannot be stored"):
        encode_array(array)


def smooth(frames: int, agents: int, rng: np.random.Generator) -> np.ndarray:
    """(A, T, 5) vehicles with a smoothly varying speed and yaw rate, far from the origin."""
    time = np.arange(frames) * 0.1
    phase, rate = rng.uniform(0, 6, (2, agents, 1)), rng.uniform(0.1, 0.5, (2, agents, 1))
    speed = 8 + 4 * np.sin(rate[0] * time + phase[0])
    heading = phase[1] + 0.3 * np.sin(rate[1] * time)
    velocity = speed[..., None] * np.stack((np.cos(heading), np.sin(heading)), -1)
    position = rng.uniform(6e5, 6.1e5, (agents, 1, 2)) + np.cumsum(velocity * 0.1, axis=1)
    return np.concatenate((position, heading[..., None], velocity), -1)


def test_thirty_agents_on_a_grid_take_less_than_ten_kilobytes():
    state = smooth(171, 30, np.random.default_rng(0))
    state[..., [0, 1, 3, 4]] = np.round(state[..., [0, 1, 3, 4]], 3)
    state[..., 2] = np.round(state[..., 2], 4)
    blob = encode_array(state)
    assert len(blob) < 10_000 < state.nbytes / 20
    assert_same(decode_array(blob), state)


def test_a_few_odd_values_do_not_spoil_the_grid():
    column = np.round(np.cumsum(np.random.default_rng(1).normal(size=1000)), 2)
    clean = len(encode_array(column))
    column[[10, 500]] = np.nan, 1 / 3
    assert len(encode_array(column)) < clean * 1.2
    column[:] = np.where(column > 0, column, -0.0)
    assert_same(decode_array(encode_array(column)), column)


def test_a_column_that_is_mostly_zero_is_put_on_the_grid_of_the_rest():
    column = np.zeros(1000)
    column[::20] = np.round(np.linspace(0.1, 9, 50), 3)
    assert len(encode_array(column)) < 200


def test_the_bytes_are_the_same_every_time():
    array = smooth(50, 3, np.random.default_rng(2))
    assert encode_array(array) == encode_array(array.copy(order="F"))


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_damaged_bytes_never_do_worse_than_an_error(data):
    blob = bytearray(encode_array(np.round(np.linspace(0, 9, 40).reshape(20, 2), 3)))
    if data.draw(st.booleans()):
        blob = blob[: data.draw(st.integers(0, len(blob) - 1))]
    else:
        position = data.draw(st.integers(0, len(blob) - 1))
        blob[position] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(CodecError):
        decode_array(bytes(blob))


@given(st.lists(st.text()))
@settings(deadline=None)
def test_strings_come_back(strings):
    assert decode_strings(encode_strings(strings)) == tuple(strings)


@pytest.mark.parametrize("blob", [b"", b"\x01", b"\x07\x01\x00\x00\x00x", encode_strings(["abc"])[:-2]])
def test_damaged_strings_are_noticed(blob):
    with pytest.raises(CodecError):
        decode_strings(blob)


def test_a_future_version_is_refused():
    blob = bytearray(encode_array(np.arange(3)))
    blob[0] = 9
    with pytest.raises(CodecError, match="codec version 9, this radp reads 1"):
        decode_array(bytes(blob))
