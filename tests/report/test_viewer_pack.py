"""Small text for arrays: what comes back is at most half a step off, and what is missing stays missing."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from radp.report.viewer.pack import ANGLE_STEP, FINEST, MISSING, MOST, TYPES, Grid, angles, pack, whole_numbers


def unpack(packed: dict[str, str]) -> np.ndarray:
    """As the page reads it."""
    kind = {name: dtype for dtype, name in TYPES.items()}[packed["t"]]
    return np.frombuffer(base64.b64decode(packed["b"]), dtype=kind.newbyteorder("<"))


@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.uint8, np.float32])
def test_packed_arrays_come_back(dtype: type) -> None:
    values = np.arange(12).reshape(3, 4).astype(dtype)
    np.testing.assert_array_equal(unpack(pack(values)), values.ravel())
    np.testing.assert_array_equal(unpack(pack(values.T)), values.T.ravel())


def test_other_types_are_refused() -> None:
    with pytest.raises(KeyError):
        pack(np.zeros(3))


@given(st.lists(st.floats(-3000, 3000), min_size=1, max_size=20), st.sampled_from([0.01, 0.1, 0.37]))
def test_whole_numbers_are_half_a_step_off_at_most(values: list[float], step: float) -> None:
    whole = whole_numbers(np.array(values), step)
    inside = np.abs(values) < MOST * step
    error = np.abs(whole * step - np.array(values))
    assert (error[inside] <= step / 2 + 1e-9).all()
    assert (np.abs(whole[~inside]) == MOST).all()


def test_missing_values_are_no_number() -> None:
    assert whole_numbers(np.array([np.nan, 1.0, -1e9, np.inf]), 0.01).tolist() == [MISSING, 100, -MOST, MOST]


@given(st.floats(-50.0, 50.0))
def test_angles_keep_their_direction(angle: float) -> None:
    back = int(angles(np.array(angle))) * ANGLE_STEP
    assert abs(back) <= np.pi + ANGLE_STEP
    assert np.hypot(np.cos(back) - np.cos(angle), np.sin(back) - np.sin(angle)) <= ANGLE_STEP


@given(st.floats(1.0, 3000.0), st.floats(10.0, 500.0), st.floats(-1e6, 5e6))
def test_grid_holds_all_near_points(length: float, margin: float, place: float) -> None:
    path = np.column_stack((np.linspace(0, length, 50), np.zeros(50))) + place
    grid = Grid.around(path, margin)
    rim = np.concatenate((path + margin * 0.999, path - margin * 0.999))
    back = grid.positions(rim).astype(float) * grid.step + grid.origin
    assert np.abs(back - rim).max() <= grid.step / 2 + 1e-6
    assert grid.step == FINEST or grid.step <= (length / 2 + margin + 1) / MOST


def test_lines_of_different_length() -> None:
    grid = Grid(np.array([100.0, 200.0]), 0.01)
    packed = grid.pack_lines([np.array([[100.0, 200.0], [101.0, 201.0]]), np.array([[99.5, 200.0]])])
    assert unpack(packed["n"]).tolist() == [2, 1]
    assert unpack(packed["xy"]).tolist() == [0, 0, 100, 100, -50, 0]
    assert unpack(grid.pack_lines([])["xy"]).size == 0
