"""One build of a moment: the model sees what it saw, and the rules what a scene made for them would show."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from radp.model.config import ModelConfig
from radp.planners.diffusion import scene_config
from radp.rules import RuleContext
from radp.rules.route import Route
from radp.scenario import ObjectType, Scenario
from radp.scene.builder import RULE_SCENES, RULES_ALONE, SceneConfig, build_scenes, scenes_from_log
from radp.scene.log_samples import LogSamples, write_log_samples
from radp.scene.npz import read_npz, write_npz
from radp.scene.samples import SampleStore, SampleWriter
from radp.scene.scene import ObjectColumn, RuleView, Scene, present
from radp.scene.settings import SampleChoice
from radp.sim.replay import observe_logs
from radp.sources.synthetic import make_scenario
from radp.training.augmentation import Draws, augment
from tests.made_roads import fork, lane, road
from tests.made_scenarios import log
from tests.scene.test_builder import NOW, assert_same, car

MINI, NUPLAN = (scene_config(ModelConfig.preset(name)) for name in ("mini", "nuplan"))
CONFIGS = [MINI, NUPLAN, SceneConfig(agents=3, lanes=5, static_objects=2, yellow_is_unknown=False)]


def crowded(seed: int = 3) -> Scenario:
    """A crossing with more road users than any model sees, and some that stand."""
    scenario = make_scenario(seed, agents=60)
    types = np.resize(np.array([0, 1, 2, 0, 1, 0, 3, 2, 0, 4], dtype=np.uint8), len(scenario.tracks))
    return replace(scenario, tracks=replace(scenario.tracks, type=types))


def assert_same_view(a: RuleView, b: RuleView) -> None:
    """All but what only a build with rules knows: who the objects are, and which lane follows which."""
    for field in fields(RuleView):
        x, y = getattr(a, field.name), getattr(b, field.name)
        if isinstance(x, torch.Tensor) and field.name not in ("object_tracks", "route_links"):
            assert x.dtype == y.dtype and torch.equal(x, y), field.name
    assert a.road_users == b.road_users


@pytest.mark.parametrize("config", CONFIGS)
def test_one_build_gives_both(config: SceneConfig) -> None:
    now = observe_logs([crowded(seed) for seed in (3, 4)], 30)
    both = build_scenes(now, replace(config, rules=True)).validate()
    assert_same(both, build_scenes(now, config))
    apart = build_scenes(now, RULE_SCENES)
    assert_same_view(RuleView.of(both), RuleView.of(apart))
    alone = build_scenes(now, RULES_ALONE)
    assert torch.equal(alone.rules.route_links, both.rules.route_links) and both.rules.route_links.any()
    assert_same_view(RuleView.of(alone), RuleView.of(apart))
    assert torch.equal(alone.ego_current_state, apart.ego_current_state)


def test_samples_read_once_and_disturbed_once(tmp_path) -> None:
    """Reading and augmenting one scene with its view equals doing so with two scenes."""
    write_log_samples(tmp_path, [crowded()], SampleChoice(stride=40, other_egos=2, reach=1_000.0))
    both, mine, rules = (LogSamples.open(tmp_path, config) for config in (replace(MINI, rules=True), MINI, RULE_SCENES))
    rows = range(len(both))
    draws = Draws.make(len(rows), torch.Generator().manual_seed(5))
    scene, apart = augment(both.read(rows), draws, 1.0), augment(rules.read(rows), draws, 1.0)
    assert_same(scene, augment(mine.read(rows), draws, 1.0))
    assert_same_view(RuleView.of(scene), RuleView.of(apart))
    known, read = (RuleContext.from_scene(one, logged=True) for one in (scene, apart))
    assert torch.equal(known.agents, read.agents) and torch.equal(known.agent_valid, read.agent_valid)
    assert torch.equal(known.target, read.target) and torch.equal(known.route.table, read.route.table)


def test_everybody_keeps_their_identity() -> None:
    scenario = crowded()
    frame = scenario.start + 30
    scene = scenes_from_log(scenario, [frame], replace(MINI, rules=True))
    view, gap = RuleView.of(scene), scenario.tracks.state[:, frame, :2] - scenario.ego[frame, :2]
    seen = ((scene.agent_tracks[0], scene.neighbor_agents_past[0, :, -1]), (view.object_tracks[0], view.objects[0]))
    for tracks, rows in seen:
        assert torch.equal(tracks >= 0, present(rows))
        known = tracks[tracks >= 0].numpy()
        assert len(set(known)) == len(known)
        distance = np.hypot(*gap[known].T)
        np.testing.assert_allclose(rows[tracks >= 0, :2].norm(dim=-1).numpy(), distance, rtol=1e-5)
    types = scenario.tracks.type[view.object_tracks[0].numpy()]
    assert (types[:32] <= ObjectType.BICYCLE).all() and (types[32:] > ObjectType.BICYCLE).all()
    size = scenario.tracks.size[view.object_tracks[0].numpy(), :2]
    np.testing.assert_array_equal(view.objects[0, :, ObjectColumn.LENGTH :].numpy(), size.astype(np.float32))
    assert set(scene.agent_tracks[0].tolist()) <= set(view.object_tracks[0].tolist())


def test_predictions_are_about_the_same_objects_in_a_crowd() -> None:
    """Fourteen walkers stand nearer than the cars: the model leaves out the last four, the rules do not."""
    objects = [car(20.0), car(30.0), car(40.0)]
    objects += [car(5.0 + i, type=ObjectType.PEDESTRIAN, size=(0.5, 0.5)) for i in range(14)]
    config = SceneConfig(agents=12, rules=True)
    scene = scenes_from_log(log(fork(), objects=objects, route=("a",)), [NOW], config, with_future=False)
    assert scene.agent_tracks[0].tolist() == [*range(3, 13), 0, 1]
    assert scene.rules.object_tracks[0, :18].tolist() == [*range(3, 17), 0, 1, 2, -1]
    predictions = torch.zeros(1, 11, 80, 4)
    predictions[..., 0], predictions[..., 2] = 100.0 + torch.arange(11.0)[:, None], 1.0
    context = RuleContext.from_scene(scene, predictions)
    assert context.tracks is scene.rules.object_tracks
    assert context.agents[0, :10, 1:, 0].eq(predictions[0, :10, :, 0]).all()
    assert context.agents[0, 14, 1:, 0].eq(110.0).all()  # the first car, as predicted
    assert context.agents[0, 10:14, 80, 0].tolist() == [15.0, 16.0, 17.0, 18.0]  # nobody predicted these
    swapped = RuleContext.from_scene(scene, predictions[:, :2], torch.tensor([[0, 16]]))
    assert swapped.agents[0, [13, 14], 80, 0].tolist() == [101.0, 100.0]
    bare = RuleContext.from_scene(replace(scene, rules=None), predictions)
    assert bare.tracks is None and bare.agents[0, :11, 80, 0].eq(predictions[0, :, -1, 0]).all()


def test_links_are_those_of_the_map_also_between_the_parts_of_a_lane() -> None:
    """Lane 2 begins 2 m behind the end of lane 1 and follows it; lane 3 begins where lane 1 ends and does not."""
    rows = [
        lane("1", [(0, 0), (60, 0)], "a", ("2",)),
        lane("2", [(62, 0), (90, 0)], "b"),
        lane("3", [(60, 0), (90, 10)], "b", index=2),
    ]
    scenario = log(road(*rows), ego=(5.0, 0.0, 0.0), route=("a", "b"))
    view = scenes_from_log(scenario, [NOW], RULES_ALONE).rules
    row_at = {round(row[0, 0].item() + 5.0): i for i, row in enumerate(view.route_lanes[0]) if present(row).any()}
    first, second, after, beside = (row_at[start] for start in (0, 30, 62, 60))
    assert view.route_links[0].nonzero().tolist() == sorted([[first, second], [second, after]])
    known, guessed = Route.of(view), Route.of(replace(view, route_links=None))
    assert known.station[0, after, 0].item() == pytest.approx(55.0)  # as if lane 2 began where lane 1 ends
    # Nothing leads there, so its place on lane 3 counts: 2 m to the east of where that one begins.
    assert guessed.station[0, after, 0].item() == pytest.approx(55.0 + 2.0 * 3.0 / 10.0**0.5)
    assert guessed.station[0, beside, 0].item() == pytest.approx(55.0)


def test_a_lane_that_only_meets_another_does_not_lead_to_it() -> None:
    """The ramp runs back to the start of lane 2 but does not lead there: it lies beside lane 2, not before it."""
    rows = [
        lane("1", [(0, 0), (40, 0)], "a", ("2",)),
        lane("2", [(40, 0), (80, 0)], "b"),
        lane("ramp", [(70, 1), (55, 15), (40, 1)], "b", index=2),
    ]
    view = scenes_from_log(log(road(*rows), ego=(5.0, 0.0, 0.0), route=("a", "b")), [NOW], RULES_ALONE).rules
    row_at = {round(row[0, 0].item() + 5.0): i for i, row in enumerate(view.route_lanes[0]) if present(row).any()}
    assert view.route_links[0].nonzero().tolist() == [[row_at[0], row_at[40]]]
    known, guessed = Route.of(view), Route.of(replace(view, route_links=None))
    assert known.station[0, row_at[40], 0].item() == guessed.station[0, row_at[40], 0].item() == pytest.approx(35.0)
    assert known.station[0, row_at[70], 0].item() == pytest.approx(65.0, abs=0.01)
    assert guessed.station[0, row_at[70], 0].item() < 0


@pytest.mark.parametrize("seed", range(3))
def test_links_of_a_sound_map_are_where_lanes_meet(seed: int) -> None:
    """Where a map is sound, scenes without links are judged in the same way."""
    scenario = make_scenario(seed)
    scene = scenes_from_log(scenario, range(20, len(scenario.time_us) - 80, 40), replace(MINI, rules=True))
    assert scene.rules.route_links.any()
    route, guessed = Route.of(scene.rules), Route.of(replace(scene.rules, route_links=None))
    for field in fields(Route):
        assert torch.equal(getattr(route, field.name), getattr(guessed, field.name)), field.name


def test_links_go_along_with_their_lanes() -> None:
    scene = build_scenes(observe_logs([crowded(seed) for seed in (3, 4)], 30), replace(MINI, rules=True))
    links = scene.rules.route_links
    assert links.shape == (2, *[scene.rules.route_lanes.shape[1]] * 2) and links.dtype == torch.bool
    assert torch.equal(Scene.cat([scene[1], scene[0]]).rules.route_links, links[[1, 0]])
    draws = Draws.make(2, torch.Generator().manual_seed(5))
    logged = scenes_from_log(crowded(), [30, 60], replace(MINI, rules=True))
    assert torch.equal(augment(logged, draws, 1.0).rules.route_links, logged.rules.route_links)


def test_repeating_a_context_repeats_its_scenes() -> None:
    scene = build_scenes(observe_logs([crowded(seed) for seed in (3, 4)], 30), replace(MINI, rules=True))
    once, scenes = (
        RuleContext.from_scene(scene).repeat_interleave(3),
        RuleContext.from_scene(scene.repeat_interleave(3)),
    )
    for name in ("agents", "agent_size", "agent_valid", "speed_now", "target", "tracks"):
        assert torch.equal(getattr(once, name), getattr(scenes, name)), name
    for field in fields(once.route):
        assert torch.equal(getattr(once.route, field.name), getattr(scenes.route, field.name)), field.name


def test_identities_and_view_go_along_but_into_no_file(tmp_path) -> None:
    scene = build_scenes(observe_logs([crowded(seed) for seed in (3, 4, 5)], 30), replace(MINI, rules=True))
    again = Scene.cat([scene[[2, 0]], scene[1]])
    assert torch.equal(again.agent_tracks, scene.agent_tracks[[2, 0, 1]])
    assert torch.equal(again.rules.route_lanes, scene.rules.route_lanes[[2, 0, 1]])
    assert scene.repeat_interleave(2).rules.objects.shape[0] == 6
    assert scene.crop(agents=4, static_objects=1, lanes=3, route_lanes=2).validate().agent_tracks.shape == (3, 4)
    bare = replace(scene, rules=None, agent_tracks=None)
    assert Scene.cat([bare, replace(scene, rules=None)]).agent_tracks is None
    with pytest.raises(ValueError, match="some scenes carry rules and some do not"):
        Scene.cat([scene, bare])
    (name, *_) = write_npz(tmp_path, scene, ["m"] * 3, ["a", "b", "c"])
    assert_same(read_npz(tmp_path / name), scene[0])
    with np.load(tmp_path / name) as arrays:
        assert set(arrays.files) == {"map_name", "token", *(field for field, _ in scene.items())}
    with SampleWriter(tmp_path / "store") as writer:
        writer.append(scene)
    assert_same(SampleStore.open(tmp_path / "store").read([0, 1, 2]), scene)
