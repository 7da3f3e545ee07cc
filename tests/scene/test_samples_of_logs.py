"""Samples kept as logs: what is read equals what the log gives."""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch

from radp.runs.errors import BadInput
from radp.scenario import Scenario
from radp.scenario.as_ego import as_ego, longest_run, possible_egos
from radp.scenario.store import ScenarioStore, ScenarioWriter
from radp.scene.builder import SceneConfig, scenes_from_log
from radp.scene.log_samples import LogSamples, write_log_samples
from radp.scene.scene import Scene
from radp.scene.settings import SampleChoice
from radp.sim.observation import HISTORY
from radp.sources.synthetic import make_scenario
from radp.storage.arrays import map_arrays, write_arrays
from radp.storage.errors import StoreError
from radp.training.data import open_samples

CHOICE = SampleChoice(stride=15, reach=1_000.0, logs_per_shard=2)


def with_gaps(scenario: Scenario) -> Scenario:
    """Some vehicles appear late, so that their windows differ from the log's."""
    valid = scenario.tracks.valid.copy()
    valid[::3, :12] = False
    valid[1::4, 150:] = False
    state = np.where(valid[..., None], scenario.tracks.state, 0.0)
    return replace(scenario, tracks=replace(scenario.tracks, valid=valid, state=state))


@pytest.fixture(scope="module")
def logs() -> list[Scenario]:
    return [with_gaps(make_scenario(seed, agents=12)) for seed in range(5)]


@pytest.fixture(scope="module")
def samples(logs, tmp_path_factory) -> LogSamples:
    return write_log_samples(tmp_path_factory.mktemp("samples"), logs, CHOICE)


def from_log(scenario: Scenario, ego: int, frame: int, config: SceneConfig) -> Scene:
    if ego == len(scenario.tracks):
        return scenes_from_log(scenario, [frame], config)
    first = longest_run(scenario.tracks.valid[ego]).start
    return scenes_from_log(as_ego(scenario, scenario.tracks.ids[ego]), [frame - first], config)


@pytest.mark.parametrize("order", ["lanes", "driving"])
def test_samples_equal_the_log_bit_for_bit(samples, logs, order):
    config = SceneConfig(route_order=order)
    opened = LogSamples.open(samples.path, config)
    rows = list(range(0, len(opened), 7))
    scene = opened.read(rows)
    scene.validate()
    for b, row in enumerate(rows):
        wanted = from_log(logs[opened.log[row]], int(opened.ego[row]), int(opened.frame[row]), config)
        for name, value in wanted.items():
            assert torch.equal(getattr(scene, name)[b : b + 1], value), (row, name)


def test_batch_does_not_matter(samples):
    rows = torch.randperm(len(samples), generator=torch.Generator().manual_seed(0))[:40].tolist()
    together = pickle.loads(pickle.dumps(samples)).read(rows)
    for name, value in Scene.cat([samples.read([row]) for row in rows]).items():
        assert torch.equal(getattr(together, name), value), name


def test_every_possible_ego_and_frame_is_taken_once(samples, logs):
    pairs = list(zip(samples.log.tolist(), samples.ego.tolist(), samples.frame.tolist()))
    assert len(set(pairs)) == len(pairs) == len(samples)
    for i, scenario in enumerate(logs):
        wanted = {scenario.tracks.ids.index(name) for name in possible_egos(scenario, 101)} | {len(scenario.tracks)}
        assert {ego for log, ego, _ in pairs if log == i} == wanted
    for log, ego, frame in pairs:
        valid = logs[log].tracks.valid
        assert ego == len(valid) or valid[ego, frame - 20 : frame + 81].sum() == 101
    assert samples.kinds().tolist() == [logs[log].kind for log in samples.log]


def test_fewer_egos(logs, tmp_path):
    few = write_log_samples(tmp_path / "few", logs[:2], SampleChoice(other_egos=3, reach=1_000.0))
    assert all(len(set(few.ego[few.log == i])) == 4 for i in range(2))
    none = write_log_samples(tmp_path / "none", logs[:2], SampleChoice(other_egos=0))
    assert none.ego.tolist() == [len(logs[log].tracks) for log in none.log]


def test_egos_far_from_the_logged_one_are_left_out(logs, samples, tmp_path):
    near = write_log_samples(tmp_path / "near", logs[:2], SampleChoice(stride=15, reach=40.0))
    wanted = [
        (log, ego, frame)
        for log, ego, frame in zip(samples.log.tolist(), samples.ego.tolist(), samples.frame.tolist())
        if log < 2 and _apart(logs[log], ego, frame) <= 40.0
    ]
    assert list(zip(near.log.tolist(), near.ego.tolist(), near.frame.tolist())) == wanted
    assert 0 < len(wanted) < (samples.log < 2).sum()


def _apart(scenario: Scenario, ego: int, frame: int) -> float:
    """Between the rear axles."""
    if ego == len(scenario.tracks):
        return 0.0
    first = longest_run(scenario.tracks.valid[ego]).start
    return float(np.hypot(*(as_ego(scenario, scenario.tracks.ids[ego]).ego[frame - first] - scenario.ego[frame])[:2]))


def test_maps_are_kept_once_and_killed_runs_go_on(logs, samples, tmp_path):
    def digest(path) -> dict[str, str]:
        files = [f for f in path.rglob("*") if f.is_file() and ".radp" not in f.parts]
        return {str(f.relative_to(path)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}

    whole = digest(samples.path)
    assert sum(name.startswith("maps") for name in whole) == len({id(scenario.map) for scenario in logs})
    begun = tmp_path / "begun"
    write_log_samples(begun, logs, CHOICE)
    (begun / "shard-00001.safetensors").unlink()
    with pytest.raises(StoreError, match="is not complete: 1 of 3 shards are missing"):
        LogSamples.open(begun)
    first = begun / "shard-00000.safetensors"
    kept = first.stat().st_mtime_ns
    write_log_samples(begun, logs, CHOICE)
    assert digest(begun) == whole and first.stat().st_mtime_ns == kept
    other = SampleChoice(stride=3, logs_per_shard=2)
    with pytest.raises(BadInput, match=r"holds another .*settings\.stride is 15 there and 3 now"):
        write_log_samples(begun, logs, other)
    (begun / "manifest.json").unlink()  # as 0.1.0 leaves it when it is killed
    with pytest.raises(BadInput, match="other settings"):
        write_log_samples(begun, logs, other)
    write_log_samples(begun, logs, CHOICE)
    assert digest(begun) == whole and first.stat().st_mtime_ns == kept


def test_from_a_store_of_scenarios(logs, samples, tmp_path):
    with ScenarioWriter(tmp_path / "store") as writer:
        for scenario in logs:
            writer.add(scenario)
    stored = write_log_samples(tmp_path / "samples", ScenarioStore.open(tmp_path / "store"), CHOICE)
    assert len(stored) == len(samples)
    for name, value in samples.read([0, 30, 60]).items():
        assert torch.equal(getattr(stored.read([0, 30, 60]), name), value)


@pytest.mark.slow
def test_several_processes_write_the_same(logs, samples, tmp_path):
    spread = write_log_samples(tmp_path / "spread", logs, CHOICE, workers=2)
    for file in samples.path.rglob("*.safetensors"):
        assert (spread.path / file.relative_to(samples.path)).read_bytes() == file.read_bytes()


def test_a_log_that_fails_is_named(tmp_path, logs):
    bad = replace(logs[0], time_us=logs[0].time_us * 3)
    with pytest.raises(BadInput, match=r"0\.300 s apart"):
        write_log_samples(tmp_path / "bad", [logs[1], bad], CHOICE)
    with pytest.raises(StoreError, match="is not complete"):
        LogSamples.open(tmp_path / "bad")


def test_a_log_too_short_for_samples(tmp_path):
    short = make_scenario(0, agents=3, frames=60)
    samples = write_log_samples(tmp_path / "s", [short], CHOICE)
    assert len(samples) == 0 and list(samples.iter_batches(4)) == []


WRONG = {
    "0.states": (np.nan, "tracks.state holds a value that is not finite"),
    "0.types": (9, "tracks.type holds 9"),
    "0.sizes": (-1.0, "tracks.size holds -1"),
    "samples.log": (7, "points to 7"),
    "samples.frame": (2**30, "outside the frames of its log"),
    "samples.first": (-3, "outside the frames of its log"),
    "samples.last": (2**30, "outside the frames of its log"),
    "samples.ego": (2**30, "no object of its log"),
    "samples.pose": (np.inf, "pose holds a value that is not finite"),
    "samples.ego_agent_future": (np.nan, "ego_agent_future holds a value that is not finite"),
    "samples.route": (2**30, "the route of a sample points to"),
    "samples.route_offsets": (2**40, "has offsets that do not cut"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_content_is_refused(name, logs, tmp_path):
    value, words = WRONG[name]
    file = write_log_samples(tmp_path, logs[:1], CHOICE).path / "shard-00000.safetensors"
    arrays, note = map_arrays(file)
    spoiled = {key: array.copy() for key, array in arrays.items()}
    spoiled[name][(0,) * spoiled[name].ndim] = value
    write_arrays(file, spoiled, note)
    with pytest.raises(StoreError, match=words):
        LogSamples.open(tmp_path).read([0])


def test_an_ego_has_the_past_that_a_scene_shows() -> None:
    assert SampleChoice().history == HISTORY - 1


def test_shorter_futures_are_taken_when_asked_for_and_never_imitated(logs, samples, tmp_path):
    choice = replace(CHOICE, other_egos=0, future=40)
    short = write_log_samples(tmp_path / "short", logs, choice)
    whole = write_log_samples(tmp_path / "whole", logs, replace(choice, future=80))
    assert len(short) > len(whole) and (short.future, whole.future) == (40, 80)
    frames = len(logs[0].time_us)
    last = int(np.flatnonzero(short.log == 0)[-1])
    assert frames - 80 <= short.frame[last] < frames - 40
    known, future = frames - 1 - int(short.frame[last]), short.read([last]).ego_agent_future[0]
    assert bool(future[:known].any(-1).all()) and not future[known:].any()
    with pytest.raises(BadInput, match="40 frames of future, this training needs 80"):
        open_samples(tmp_path / "short", SceneConfig())
    assert len(open_samples(tmp_path / "short", SceneConfig(), future=1)) == len(short)
    with pytest.raises(BadInput, match="future is 0"):
        write_log_samples(tmp_path / "none", logs, replace(choice, future=0))
