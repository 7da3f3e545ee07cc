import json
import os
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from radp.scenario import TrafficLights
from radp.scenario.store import ScenarioStore, ScenarioWriter, StoreError, encode_scenarios
from tests.small_scenarios import assert_same, small_scenario


def scenarios(count: int):
    """Two kinds and two maps in turn."""
    kinds = ("following_lane", "stopping")
    return [small_scenario(f"s{i}", kind=kinds[i % 2], shift=float(i % 2)) for i in range(count)]


def write(path: Path, items, rows_per_shard: int = 2) -> Path:
    with ScenarioWriter(path, rows_per_shard) as writer:
        for scenario in items:
            writer.add(scenario)
    return path


def files(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(path.iterdir())}


def test_scenarios_come_back_in_every_bit(tmp_path):
    items = scenarios(5)
    items[3] = replace(items[3], goal=None, tags={}, route=(), start=0, dt=0.05,
                       lights=TrafficLights(np.zeros(0, np.int64), np.zeros((6, 0), np.uint8)))  # fmt: skip
    store = ScenarioStore.open(write(tmp_path / "store", items))
    assert store.problems == []
    assert store.tokens() == ["s0", "s1", "s2", "s3", "s4"]
    for scenario, back in zip(items, store, strict=True):
        assert_same(back, scenario)
    assert_same(store["s3"], items[3])
    assert_same(store[-1], items[4])


def test_the_index_needs_no_decoding(tmp_path):
    store = ScenarioStore.open(write(tmp_path / "store", scenarios(5)))
    assert store.kinds() == {"following_lane": 3, "stopping": 2}
    entry = store.entries()[1]
    assert (entry.token, entry.kind, entry.source, entry.frames, entry.start, entry.tracks, entry.tags) == (
        "s1", "stopping", "hand", 5, 1, 2, {"hazard": "none"})  # fmt: skip
    assert "s4" in store and "s5" not in store


def test_maps_are_stored_once_and_shared(tmp_path):
    path = write(tmp_path / "store", scenarios(6))
    store = ScenarioStore.open(path)
    assert len(store.map_keys()) == 2
    assert store[0].map is store[2].map is store[4].map
    assert store[1].map is not store[0].map
    assert sorted(file.name for file in path.glob("maps-*")) == ["maps-00000.arrow"]


def test_only_the_last_maps_are_remembered(tmp_path):
    items = [small_scenario(f"s{i}", shift=float(i)) for i in range(3)]
    store = ScenarioStore.open(write(tmp_path / "store", items), maps_kept=2)
    first = store[0].map
    assert store[1].map is not None and store[0].map is first
    store[2]
    assert store[0].map is first, "map 1 was the one used longest ago"
    store[1], store[2]
    assert store[0].map is not first


def test_slices_are_lazy_and_nest(tmp_path):
    store = ScenarioStore.open(write(tmp_path / "store", scenarios(6)))
    part = store[1:][::2]
    assert len(part) == 3 and part.tokens() == ["s1", "s3", "s5"] and part.kinds() == {"stopping": 3}
    assert part[-1].token == "s5"
    assert [scenario.token for scenario in store.select([4, 0])] == ["s4", "s0"]
    with pytest.raises(IndexError):
        store[6]
    with pytest.raises(StoreError, match="holds no scenario 's9'"):
        store["s9"]


def test_another_process_can_get_it(tmp_path):
    store = ScenarioStore.open(write(tmp_path / "store", scenarios(3)), maps_kept=3)
    again = pickle.loads(pickle.dumps(store[1:]))
    assert again.tokens() == ["s1", "s2"] and again.store.maps_kept == 3
    assert_same(again[0], store[1])


def test_the_same_scenarios_give_the_same_bytes(tmp_path):
    one = files(write(tmp_path / "one", scenarios(5)))
    assert one == files(write(tmp_path / "two", scenarios(5)))
    assert len(one) == 5  # manifest, maps, three shards


def test_a_writer_goes_on_where_another_stopped(tmp_path):
    items = scenarios(6)
    path = write(tmp_path / "store", items[:4])
    with ScenarioWriter(path, rows_per_shard=2) as writer:
        assert len(writer) == 4 and "s3" in writer and "s4" not in writer
        with pytest.raises(StoreError, match="holds a scenario 's3' already"):
            writer.add(items[3])
        for scenario in items[4:]:
            writer.add(scenario)
        with pytest.raises(StoreError, match="'s5' already"):
            writer.add(items[5])
    assert files(path) == files(write(tmp_path / "at once", items))


def test_scenarios_encoded_elsewhere_give_the_same_bytes(tmp_path):
    items = scenarios(5)
    encoded = [pickle.loads(pickle.dumps(encode_scenarios(part))) for part in (items[:3], items[3:])]
    with ScenarioWriter(tmp_path / "store", rows_per_shard=2) as writer:
        for part in encoded:
            writer.add_encoded(part)
        with pytest.raises(StoreError, match="'s3' already"):
            writer.add_encoded(encoded[1])
        with pytest.raises(StoreError, match="'new' already"):
            writer.add_encoded(encode_scenarios([small_scenario("new"), small_scenario("new")]))
        assert len(writer) == 5
    assert files(tmp_path / "store") == files(write(tmp_path / "one by one", items))


def test_an_empty_store(tmp_path):
    store = ScenarioStore.open(write(tmp_path / "store", []))
    assert len(store) == 0 and store.kinds() == {} and list(store) == []


def test_a_bad_scenario_is_refused_and_the_others_are_kept(tmp_path):
    good, bad = small_scenario("good"), replace(small_scenario("bad"), start=5)
    with pytest.raises(ValueError, match="scenario 'bad'"), ScenarioWriter(tmp_path / "store") as writer:
        writer.add(good)
        writer.add(bad)
    with pytest.raises(StoreError, match=r"is incomplete: what wrote it was stopped .* it holds 1 scenarios"):
        ScenarioStore.open(tmp_path / "store")
    assert ScenarioStore.open(tmp_path / "store", allow_missing=True).tokens() == ["good"]


def test_two_writers_at_once_are_refused(tmp_path):
    pytest.importorskip("fcntl")
    with ScenarioWriter(tmp_path / "store"), pytest.raises(StoreError, match="being written by another"):
        ScenarioWriter(tmp_path / "store")
    with ScenarioWriter(tmp_path / "store"):
        pass


def foreign_arrow(file: Path) -> None:
    with pa.ipc.new_file(str(file), pa.schema([("x", pa.int32())])) as out:
        out.write_batch(pa.record_batch({"x": pa.array([1], pa.int32())}))


def future_shard(file: Path) -> None:
    batch = pa.ipc.open_file(file.read_bytes()).get_batch(0)
    schema = batch.schema.with_metadata({**batch.schema.metadata, b"radp.version": b"2"})
    with pa.ipc.new_file(str(file), schema) as out:
        out.write_batch(pa.record_batch(batch.columns, schema=schema))


def other_columns(file: Path) -> None:
    batch = pa.ipc.open_file(file.read_bytes()).get_batch(0).select(["token", "kind"])
    with pa.ipc.new_file(str(file), batch.schema) as out:
        out.write_batch(batch)


BREAKS = {
    "cut short": lambda file: file.write_bytes(file.read_bytes()[:-100]),
    "cut to a half": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "empty": lambda file: file.write_bytes(b""),
    "text": lambda file: file.write_text("not an Arrow file"),
    "missing": lambda file: file.unlink(),
    "foreign": foreign_arrow,
    "future": future_shard,
    "other columns": other_columns,
    "another shard": lambda file: file.write_bytes(file.with_name("scenarios-00002.arrow").read_bytes()),
}
WORDS = {
    "foreign": "not one of radp-scenarios",
    "future": "has version 2; this radp reads version 1",
    "missing": "is missing",
    "other columns": "columns",
    "another shard": "1 rows where the manifest says 2",
}


@pytest.mark.parametrize("name", list(BREAKS))
def test_a_broken_shard_is_named_and_costs_only_its_scenarios(tmp_path, name):
    path = write(tmp_path / "store", scenarios(5))
    broken = path / "scenarios-00001.arrow"
    BREAKS[name](broken)
    with pytest.raises(StoreError, match=r"is incomplete: .*scenarios-00001.*; 3 of 5 scenarios can be read"):
        ScenarioStore.open(path)
    store = ScenarioStore.open(path, allow_missing=True)
    assert store.tokens() == ["s0", "s1", "s4"] and store.missing == 2
    assert_same(store["s4"], scenarios(5)[4])
    (problem,) = store.problems
    assert str(broken) in problem and "\n" not in problem and WORDS.get(name, "not a readable Arrow file") in problem
    with pytest.raises(StoreError, match="scenarios-00001"):
        store["s2"]
    with pytest.raises(StoreError, match="nothing can be added"):
        ScenarioWriter(path)


def test_a_broken_map_shard_costs_the_scenarios_of_its_maps(tmp_path):
    items = [*scenarios(2), *(small_scenario(f"t{i}", shift=50.0) for i in range(2))]
    path = write(tmp_path / "store", items)
    (path / "maps-00000.arrow").write_bytes(b"?")
    with pytest.raises(StoreError, match=r"is incomplete: .*maps-00000.*; 2 of 4 scenarios can be read"):
        ScenarioStore.open(path)
    store = ScenarioStore.open(path, allow_missing=True)
    assert store.tokens() == ["t0", "t1"] and store.missing == 2
    assert_same(store["t0"], items[2])
    with pytest.raises(StoreError, match=r"maps-00000\.arrow"):
        store["s0"]


@pytest.mark.parametrize("name", ["scenarios-00001.arrow", "maps-00000.arrow"])
def test_flipped_bits_are_found_in_the_scenario_they_hit(tmp_path, name):
    path = write(tmp_path / "store", scenarios(4))
    data = bytearray((path / name).read_bytes())
    start = data.index(b"RADPBLOB")
    data[start + 40] ^= 4
    (path / name).write_bytes(data)
    store = ScenarioStore.open(path)
    token = "s2" if name.startswith("scenarios") else "s0"
    with pytest.raises(StoreError, match=f"{name}: .* cannot be read .*damaged"):
        store[token]
    assert_same(store["s3"], scenarios(4)[3])


MANIFESTS = {
    "": "not readable JSON",
    "{": "not readable JSON",
    "[]": "does not describe a scenario store",
    '{"format": "something"}': "does not describe a scenario store",
    '{"format": "radp-scenarios", "version": 2, "shards": []}': "has version 2; this radp reads version 1",
    '{"format": "radp-scenarios", "version": 1}': "damaged",
    '{"format": "radp-scenarios", "version": 1, "shards": [3]}': "damaged",
    '{"format": "radp-scenarios", "version": 1, "shards": [{"scenarios": {"file": "../x", "rows": 1}}]}': "damaged",
    '{"format": "radp-scenarios", "version": 1, "shards": [{"scenarios": {"file": "x.arrow"}}]}': "damaged",
}


@pytest.mark.parametrize("text", list(MANIFESTS))
def test_a_manifest_that_cannot_be_used_is_named(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(StoreError, match=MANIFESTS[text]) as caught:
        ScenarioStore.open(tmp_path)
    assert "manifest.json" in str(caught.value) and "\n" not in str(caught.value)


def test_a_folder_without_a_store_is_named(tmp_path):
    with pytest.raises(StoreError, match="holds no scenario store"):
        ScenarioStore.open(tmp_path / "nowhere")


def test_what_a_killed_writer_left_behind_is_no_harm(tmp_path):
    path = write(tmp_path / "store", scenarios(2))
    (path / "scenarios-00001.arrow").write_bytes(b"written, but not in the manifest yet")
    (path / ".tmp-77-scenarios-00002.arrow").write_bytes(b"half")
    assert ScenarioStore.open(path).tokens() == ["s0", "s1"]
    write(path, scenarios(4)[2:])
    assert files(path) == files(write(tmp_path / "at once", scenarios(4)))


def test_a_store_opens_without_decoding_anything(tmp_path, monkeypatch):
    from radp.scenario import store as store_module
    from radp.storage import codec

    path = write(tmp_path / "store", scenarios(100), rows_per_shard=32)
    monkeypatch.setattr(codec, "decode_array", None)
    monkeypatch.setattr(store_module, "scenario_from_row", None)
    store = ScenarioStore.open(path)
    assert store.kinds() == {"following_lane": 50, "stopping": 50}
    assert json.loads((path / "manifest.json").read_text())["scenarios"] == 100
    assert not any(name.startswith(".") for name in os.listdir(path))
