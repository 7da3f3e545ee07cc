import pytest
import torch

from radp.scene.scene import INPUT_FIELDS, Scene, present
from tests.made_scenes import made_scene


def test_indexing_keeps_the_batch_axis_and_picks_the_right_samples():
    scene = made_scene(batch=5)
    assert len(scene[3]) == 1 and torch.equal(scene[3].lanes[0], scene.lanes[3])
    assert torch.equal(scene[-1].lanes[0], scene.lanes[4])
    assert torch.equal(scene[1:3].ego_agent_future, scene.ego_agent_future[1:3])
    assert torch.equal(scene[[4, 0]].route_lanes, scene.route_lanes[[4, 0]])
    with pytest.raises(IndexError):
        scene[5]


def test_cat_undoes_splitting():
    scene = made_scene(batch=5)
    again = Scene.cat([scene[:2], scene[2], scene[3:]])
    for name, value in scene.items():
        assert torch.equal(getattr(again, name), value)
    with pytest.raises(ValueError, match="carry ego_agent_future"):
        Scene.cat([scene, scene.without_future()])


def test_repeat_interleave_and_crop():
    scene = made_scene(batch=2)
    assert torch.equal(scene.repeat_interleave(3).lanes[[0, 3]], scene.lanes)
    small = scene.crop(agents=4, static_objects=1, lanes=7, route_lanes=2).validate()
    assert small.neighbor_agents_past.shape[1] == 4 and small.neighbor_agents_future.shape[1] == 4
    assert torch.equal(small.lanes_has_speed_limit, scene.lanes_has_speed_limit[:, :7])


def test_validate_lists_every_fault():
    scene = made_scene(batch=2)
    fields = dict(scene.items())
    fields["lanes"] = fields["lanes"][..., :11]
    fields["static_objects"] = fields["static_objects"].double()
    fields["ego_current_state"] = torch.full((2, 10), float("nan"))
    with pytest.raises(ValueError) as error:
        Scene(**fields).validate()
    for name in ("lanes has shape", "static_objects is torch.float64", "ego_current_state holds"):
        assert name in str(error.value)
    fields = dict(scene.items()) | {"lanes_speed_limit": scene.lanes_speed_limit[:, 1:]}
    with pytest.raises(ValueError, match="lanes_speed_limit has 69 rows"):
        Scene(**fields).validate()


def test_present_means_any_non_zero_column():
    rows = torch.tensor([[0.0, 0.0], [0.0, -1.0]])
    assert present(rows).tolist() == [False, True]


def test_items_skip_absent_futures():
    assert tuple(name for name, _ in made_scene().without_future().items()) == INPUT_FIELDS
