import json

import pytest
import torch

from radp.scene.normaliser import Normaliser
from radp.scene.scene import BOOL_FIELDS, FUTURE_FIELDS
from tests.made_scenes import made_scene


def test_padding_stays_zero_and_the_inverse_gives_back_the_scene():
    scene = made_scene()
    normaliser = Normaliser.published()
    small = normaliser.observation.normalise(scene)
    assert (small.lanes[(scene.lanes == 0).all(-1)] == 0).all()
    assert small.ego_current_state[0, :5].tolist() == pytest.approx([-0.5, 0, 1, 0, 0.25])
    back = normaliser.observation.denormalise(small)
    for name, value in scene.items():
        torch.testing.assert_close(getattr(back, name), value)
        if name in BOOL_FIELDS + FUTURE_FIELDS:
            assert torch.equal(getattr(small, name), value)


def test_state_normaliser_moves_also_zero_rows():
    states = torch.zeros(2, 11, 80, 4)
    normaliser = Normaliser.published().state
    assert normaliser.normalise(states)[1, 3, 7].tolist() == [-0.5, 0, 0, 0]
    torch.testing.assert_close(normaliser.denormalise(normaliser.normalise(states + 3)), states + 3)


def test_the_json_round_trip_is_exact():
    normaliser = Normaliser.published(neighbours=4)
    again = Normaliser.from_args(json.loads(json.dumps(normaliser.to_args())))
    assert again.to_args() == normaliser.to_args()
    assert torch.equal(again.state.mean, normaliser.state.mean) and again.neighbours == 4
    with pytest.raises(ValueError, match="state_normalizer"):
        Normaliser.from_args({"observation_normalizer": {}})
