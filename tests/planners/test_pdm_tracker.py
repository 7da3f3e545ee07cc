"""The tracker of the published PDM-Closed: a dense fit with its slip, and a known number of it."""

import numpy as np
import pytest

from radp.planners.pdm.drive import fit_speeds_as_published
from tests.sim.test_tracker import drive_shape

DT = 0.1


def dense(poses):
    """Least squares in v0 and accelerations; the regularisation rows are -a_j, only the last one is a difference."""
    size = len(poses) - 1
    sums = np.concatenate((np.ones((size, 1)), DT * np.tri(size, size - 1, -1)), 1)
    ahead = np.stack((np.cos(poses[:-1, 2]), np.sin(poses[:-1, 2])), 1)
    model = (ahead[:, :, None] * DT * sums[:, None, :]).reshape(2 * size, size)
    rows = np.zeros((size - 2, size))
    rows[np.arange(size - 2), 1 + np.arange(size - 2)] = -1.0
    rows[-1, -1] = 1.0
    target = np.diff(poses[:, :2], axis=0).reshape(-1)
    return sums @ (np.linalg.pinv(model.T @ model + 1e-4 * rows.T @ rows) @ model.T @ target)


def fitted(poses):
    speeds = np.zeros(len(poses) - 1)
    fit_speeds_as_published(poses, len(poses), np.full((3, len(poses)), np.nan), speeds)
    return speeds


@pytest.mark.parametrize("size", (3, 4, 5, 40))
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_dense_fit(size, seed):
    poses = drive_shape(seed, size)
    np.testing.assert_allclose(fitted(poses), dense(poses), atol=1e-8)


def test_braking_looks_slower_than_it_is():
    speed = np.maximum(9.0 - 3.0 * DT * np.arange(40), 0.0)
    poses = np.zeros((41, 3))
    poses[1:, 0] = np.cumsum(speed * DT)
    assert fitted(poses)[0] == pytest.approx(8.815, abs=2e-3)
