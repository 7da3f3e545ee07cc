"""The sample store: every bit comes back, in any order, and killed writers go on."""

from __future__ import annotations

import hashlib
import pickle

import numpy as np
import pytest
import torch

from radp.runs.errors import BadInput
from radp.scene.npz import NpzFolder, write_npz
from radp.scene.samples import SAMPLES, SampleStore, SampleWriter, iter_batches, pack_npz
from radp.scene.scene import Scene
from radp.storage.arrays import map_arrays, write_arrays
from radp.storage.errors import StoreError
from tests.made_scenes import made_scene


def assert_same(a: Scene, b: Scene) -> None:
    assert [name for name, _ in a.items()] == [name for name, _ in b.items()]
    for (name, x), (_, y) in zip(a.items(), b.items()):
        assert x.dtype == y.dtype and torch.equal(x, y), name


def write(path, scene: Scene, parts: list[int], shard_size: int = 8) -> SampleStore:
    with SampleWriter(path, shard_size) as writer:
        for part in scene_parts(scene, parts):
            writer.append(part)
    return SampleStore.open(path)


def scene_parts(scene: Scene, parts: list[int]) -> list[Scene]:
    ends = np.cumsum(parts)
    assert ends[-1] == len(scene)
    return [scene[int(end - size) : int(end)] for end, size in zip(ends, parts)]


@pytest.fixture(scope="module")
def scene() -> Scene:
    return made_scene(21)


def test_round_trip_in_any_order(tmp_path, scene):
    store = write(tmp_path / "s", scene, [5, 5, 5, 5, 1])
    assert len(store) == 21
    order = torch.randperm(21, generator=torch.Generator().manual_seed(1)).tolist()
    assert_same(store.read(order), scene[order])
    assert_same(store.read([3, 3, 20]), scene[[3, 3, 20]])
    store.read(np.array([0])).validate()
    assert_same(pickle.loads(pickle.dumps(store)).read([2]), scene[2])


def test_special_values_survive(tmp_path, scene):
    odd = torch.tensor([-0.0, 1e-45, 3.4e38, 0.1, 1 + 2**-23, -1e-30, 7.0, 65504.1, 2.0**-149, 1 / 3])
    object.__setattr__(scene, "ego_current_state", scene.ego_current_state.clone())
    scene.ego_current_state[4] = odd
    store = write(tmp_path / "s", scene, [21])
    found = store.read([4]).ego_current_state[0]
    assert found.numpy().tobytes() == odd.numpy().tobytes()


def test_scenes_without_future(tmp_path, scene):
    store = write(tmp_path / "s", scene.without_future(), [21])
    assert store.read([0]).ego_agent_future is None


def test_batches_cover_all_samples_once(tmp_path, scene):
    store = write(tmp_path / "s", scene, [21])
    plain = list(store.iter_batches(4, drop_last=False))
    assert [len(batch) for batch in plain] == [4, 4, 4, 4, 4, 1]
    assert_same(Scene.cat(plain), scene)
    assert len(list(store.iter_batches(4))) == 5

    def shuffled(seed: int) -> torch.Tensor:
        batches = store.iter_batches(4, torch.Generator().manual_seed(seed), drop_last=False)
        return torch.cat([batch.lanes.sum((1, 2, 3)) for batch in batches])

    sums = scene.lanes.sum((1, 2, 3))
    assert torch.equal(shuffled(0), shuffled(0)) and not torch.equal(shuffled(0), shuffled(1))
    assert torch.equal(shuffled(0).sort().values, sums.sort().values)


def test_bytes_depend_on_the_samples_alone(tmp_path, scene):
    def digest(path) -> list[str]:
        return [hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(path.iterdir())]

    write(tmp_path / "a", scene, [21])
    write(tmp_path / "b", scene, [1, 7, 13])
    assert digest(tmp_path / "a") == digest(tmp_path / "b")


def test_killed_writer_goes_on(tmp_path, scene):
    with pytest.raises(KeyboardInterrupt), SampleWriter(tmp_path / "s", 8) as writer:
        for part in scene_parts(scene, [5, 5, 5, 6]):
            writer.append(part)
            if len(writer) == 8:
                (tmp_path / "s" / ".tmp-1-shard-00001.safetensors").write_bytes(b"half")
                raise KeyboardInterrupt
    with pytest.raises(BadInput, match="is not finished"):
        SampleStore.open(tmp_path / "s")
    with SampleWriter(tmp_path / "s", 8) as writer:
        assert len(writer) == 8
        writer.append(scene[8:])
    store = SampleStore.open(tmp_path / "s")
    assert_same(store.read(range(21)), scene)
    wanted = [SAMPLES.file, *(f"shard-0000{i}.safetensors" for i in range(3))]
    assert sorted(file.name for file in (tmp_path / "s").iterdir()) == wanted


def test_finished_or_different_stores_are_refused(tmp_path, scene):
    write(tmp_path / "s", scene, [21])
    with pytest.raises(BadInput, match="finished"):
        SampleWriter(tmp_path / "s")
    with pytest.raises(ValueError, match="fields"), SampleWriter(tmp_path / "t") as writer:
        writer.append(scene)
        writer.append(scene.without_future())
    with pytest.raises(BadInput, match="no sample"), SampleWriter(tmp_path / "u"):
        pass


def test_wrong_positions_and_broken_files_are_named(tmp_path, scene):
    store = write(tmp_path / "s", scene, [21])
    for row in (21, -1):
        with pytest.raises(IndexError, match=f"sample {row} of a store of 21"):
            store.read([0, row])
    file = tmp_path / "s" / "shard-00001.safetensors"
    file.write_bytes(file.read_bytes()[:5000])
    with pytest.raises(StoreError, match=r"shard-00001.*ends too early"):
        SampleStore.open(tmp_path / "s")
    file.unlink()
    with pytest.raises(StoreError, match="is not complete: 1 of 3 shards are missing"):
        SampleStore.open(tmp_path / "s")
    (tmp_path / "s" / SAMPLES.file).write_text("{}")
    with pytest.raises(BadInput, match="does not describe a sample store"):
        SampleStore.open(tmp_path / "s")


def test_a_folder_of_npz_is_packed_as_it_is(tmp_path, scene):
    write_npz(tmp_path / "npz", scene, ["town"] * 21, [f"{i:03d}" for i in range(21)])
    store = pack_npz(tmp_path / "npz", tmp_path / "s")
    assert_same(store.read(range(21)), scene)
    batches = (
        iter_batches(source, 8, torch.Generator().manual_seed(3)) for source in (store, NpzFolder(tmp_path / "npz"))
    )
    for packed, loose in zip(*batches):
        assert_same(packed, loose)


def test_array_files(tmp_path):
    arrays = {
        "b": np.arange(6.0).reshape(2, 3),
        "a": np.array([True, False]),
        "empty": np.zeros((0, 4), dtype=np.int32),
    }
    write_arrays(tmp_path / "x", arrays, {"who": "me"})
    found, note = map_arrays(tmp_path / "x")
    assert note == {"who": "me"} and found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and np.array_equal(found[name], array)
    found["b"][0, 0] = 99.0  # stays in memory
    assert map_arrays(tmp_path / "x")[0]["b"][0, 0] == 0.0
    for bad in (b"", b"\x01", b"\xff" * 100):
        (tmp_path / "bad").write_bytes(bad)
        with pytest.raises(StoreError, match="bad: not a readable array file"):
            map_arrays(tmp_path / "bad")


def rewrite(path, change) -> None:
    """Change the arrays of the first shard, and write it as the store would."""
    arrays, note = map_arrays(path / "shard-00000.safetensors")
    whole = {name: array.copy() for name, array in arrays.items()}
    change(whole)
    write_arrays(path / "shard-00000.safetensors", whole, note)


def test_wrong_content_is_refused(tmp_path):
    scene = made_scene(5)

    def nan(arrays):
        arrays["lanes"][0, 0, 0, 0] = np.nan

    def cut(arrays):
        arrays["lanes"] = arrays["lanes"][:3]

    def flat(arrays):
        arrays["static_objects"] = arrays["static_objects"].reshape(len(arrays["static_objects"]), -1)

    def double(arrays):
        arrays["lanes_speed_limit"] = arrays["lanes_speed_limit"].astype(np.float64)

    def gone(arrays):
        del arrays["route_lanes"]

    cases = {nan: "not finite", cut: "lanes of shard 0 is", flat: "has shape", double: "expected torch.float32",
             gone: "no 'route_lanes'"}  # fmt: skip
    for number, (change, words) in enumerate(cases.items()):
        path = tmp_path / str(number)
        write(path, scene, [5])
        rewrite(path, change)
        with pytest.raises(StoreError, match=words):
            SampleStore.open(path).read([0])
    manifest = tmp_path / "0" / "manifest.json"
    for content in ('{"fields": [], "shards": [5]}', '{"fields": {}, "shards": 5}', '{"shards": [5]}', '{"fields": 3}'):
        manifest.write_text(f'{{"format": "radp-samples", "version": 1, {content[1:]}')
        with pytest.raises(StoreError, match="is damaged"):
            SampleStore.open(tmp_path / "0")


def test_truth_values_are_0_or_1(tmp_path):
    write_arrays(tmp_path / "a", {"flag": np.array([True, False])})
    data = bytearray((tmp_path / "a").read_bytes())
    data[data.rindex(b"\x01\x00")] = 7
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(StoreError, match="a truth value is neither 0 nor 1"):
        map_arrays(tmp_path / "a")
