from dataclasses import dataclass, replace

import numpy as np
import pytest

from radp.geometry.ragged import Polygons, Ragged
from radp.road.road_map import strips
from radp.scenario import RoadMap, Tracks, TrafficLights
from radp.storage.codec import CodecError
from radp.storage.records import content_hash, decode_fields, encode_fields, pack_blobs, unpack_blobs
from tests.small_scenarios import assert_same, small_map, small_scenario


def test_records_come_back_in_every_bit():
    scenario = small_scenario()
    for record, kind in ((scenario.map, RoadMap), (scenario.tracks, Tracks), (scenario.lights, TrafficLights)):
        assert_same(decode_fields(kind, encode_fields(record)), record)


def test_lane_areas_are_written_only_where_they_do_not_follow_from_the_borders():
    road = small_map()
    blobs = encode_fields(road)
    assert blobs["lane_polygons"] == b"" and "lane_polygons.offsets" not in blobs
    wider = replace(road, lane_polygons=Polygons.from_exteriors([ring * 1.01 for (ring,) in road.lane_polygons]))
    assert "lane_polygons.offsets" in encode_fields(wider)
    assert_same(decode_fields(RoadMap, encode_fields(wider)), wider)


@pytest.mark.parametrize("value", [3.0, -0.0, np.nan])
def test_states_that_are_not_valid_come_back_even_if_they_are_not_zero(value):
    tracks = small_scenario().tracks
    state = tracks.state.copy()
    state[0, 0, 2] = value
    odd = replace(tracks, state=state)
    assert_same(decode_fields(Tracks, encode_fields(odd)), odd)


def test_no_tracks():
    none = Tracks((), np.zeros(0, np.uint8), np.zeros((0, 3)), np.zeros((0, 6, 5)), np.zeros((0, 6), bool))
    assert_same(decode_fields(Tracks, encode_fields(none)), none)


def test_the_hash_sees_every_value():
    road = small_map()
    assert content_hash(road) == content_hash(small_map())
    others = [
        replace(road, name="other"),
        replace(road, lane_ids=("1", "2", "8")),
        replace(road, speed_limit=np.nextafter(road.speed_limit, 99)),
        replace(road, left_neighbor=road.left_neighbor.astype(np.int32)),
        replace(road, crosswalks=road.stop_lines),
        small_map(shift=1e-9),
    ]
    assert len({content_hash(other) for other in [road, *others]}) == len(others) + 1


def test_a_field_that_the_writer_did_not_know_gets_its_default():
    blobs = encode_fields(small_map())
    del blobs["name"]
    assert decode_fields(RoadMap, blobs).name == ""
    del blobs["left.offsets"]
    with pytest.raises(CodecError, match=r"left\.offsets is missing"):
        decode_fields(RoadMap, blobs)


def test_a_value_without_a_blob_is_refused():
    @dataclass(frozen=True)
    class Odd:
        number: int

    with pytest.raises(TypeError, match="number is a int"):
        encode_fields(Odd(3))


def test_packed_blobs_come_back_and_damage_is_noticed():
    blobs = {"a": b"one", "empty": b"", "b.c": bytes(range(256))}
    packed = pack_blobs(blobs)
    assert {name: bytes(blob) for name, blob in unpack_blobs(packed).items()} == blobs
    for broken in (b"", packed[:7], packed[:15], packed[:-1], packed + b"x", b"X" + packed[1:]):
        with pytest.raises(CodecError):
            unpack_blobs(broken)
    for position in range(len(packed)):
        flipped = bytearray(packed)
        flipped[position] ^= 1
        with pytest.raises(CodecError):
            unpack_blobs(bytes(flipped))


def test_strips_at_once_are_those_one_by_one():
    rng = np.random.default_rng(0)
    for lanes in (0, 1, 7):
        left, right = (
            [rng.normal(size=(int(rng.integers(0, 5)), 2)) for _ in range(lanes)],
            [rng.normal(size=(int(rng.integers(0, 5)), 2)) for _ in range(lanes)],
        )
        for i in range(0, lanes, 2):
            if len(left[i]) and len(right[i]):
                right[i][0] = left[i][0]  # a ring that closes itself
        wanted = Polygons.from_exteriors([np.concatenate((a, b[::-1])) for a, b in zip(left, right)])
        assert_same(strips(Ragged.from_rows(left, width=2), Ragged.from_rows(right, width=2)), wanted)
