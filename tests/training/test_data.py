"""Several folders of samples in one batch."""

import numpy as np
import pytest
import torch

from radp.runs.errors import BadInput
from radp.training.data import Mixture
from radp.training.loop import shuffled_rows
from radp.training.settings import LoopConfig
from tests.made_scenes import made_scene


class Numbered:
    """`count` samples; the ego's x position is the number of the sample, counted from `first`."""

    def __init__(self, count: int, first: int) -> None:
        self.count, self.first = count, first

    def __len__(self) -> int:
        return self.count

    def read(self, indices):
        scene = made_scene(batch=len(indices))
        scene.ego_current_state[:, 0] = torch.as_tensor(np.asarray(indices) + self.first, dtype=torch.float32)
        return scene


def test_one_source_alone_is_shuffled_as_ever():
    mixture = Mixture([Numbered(50, 0)])
    for step in (0, 3, 7):
        np.testing.assert_array_equal(mixture.rows(10, step, 3), shuffled_rows(50, 10, step, 3))


def test_every_batch_has_its_shares_and_every_sample_its_turn():
    mixture = Mixture([Numbered(60, 0), Numbered(20, 60)], [0.6, 0.4])
    assert mixture.counts(10) == [6, 4]
    rows = np.concatenate([mixture.rows(10, step, 1) for step in range(5)])
    assert sorted(rows[rows >= 60]) == list(range(60, 80))
    again = np.concatenate([mixture.rows(10, step, 1) for step in range(10)])
    assert sorted(again[again < 60]) == list(range(60))


def test_samples_come_in_the_order_asked_for():
    mixture = Mixture([Numbered(5, 0), Numbered(5, 5), Numbered(5, 10)])
    rows = [12, 0, 7, 3, 14, 5]
    assert mixture.read(rows).ego_current_state[:, 0].tolist() == rows


@pytest.mark.parametrize("shares", [[1.0], [0.5, -0.5], [0.5, float("nan")]])
def test_bad_shares_are_refused(shares):
    with pytest.raises(BadInput, match="as many shares"):
        Mixture([Numbered(5, 0), Numbered(5, 5)], shares)


def test_a_share_that_gets_no_sample_is_refused():
    with pytest.raises(BadInput, match="takes 0 samples"):
        Mixture([Numbered(500, 0), Numbered(5, 500)], [0.99, 0.01]).rows(10, 0, 0)


def test_a_constant_rate_may_fall_at_the_end():
    loop = LoopConfig(steps=100, warmup=10, schedule="constant", decay=20)
    assert [loop.rate(step) for step in (0, 9, 50, 80, 90, 99)] == pytest.approx([0.1, 1.0, 1.0, 1.0, 0.5, 0.05])
