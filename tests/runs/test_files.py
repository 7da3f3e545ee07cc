import json
import os

import pytest

from radp.runs.files import atomic_path, remove_temporaries, write_atomically, write_json_atomically


def test_writes_and_replaces(tmp_path):
    write_atomically(tmp_path / "a", b"one")
    write_atomically(tmp_path / "a", b"two")
    assert (tmp_path / "a").read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["a"]


def test_a_failure_keeps_the_old_content_and_leaves_nothing_behind(tmp_path):
    write_atomically(tmp_path / "a", b"old")
    with pytest.raises(RuntimeError), atomic_path(tmp_path / "a") as temporary:
        temporary.write_bytes(b"half")
        raise RuntimeError
    assert (tmp_path / "a").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_json_refuses_nan_and_keeps_the_old_file(tmp_path):
    write_json_atomically(tmp_path / "a.json", {"b": 1, "a": [2.5, None]})
    with pytest.raises(ValueError):
        write_json_atomically(tmp_path / "a.json", {"x": float("nan")})
    assert json.loads((tmp_path / "a.json").read_text()) == {"b": 1, "a": [2.5, None]}


def test_leftovers_of_killed_writers_are_removed(tmp_path):
    (tmp_path / ".tmp-123-x.json").write_bytes(b"half")
    (tmp_path / "x.json").write_bytes(b"{}")
    remove_temporaries(tmp_path)
    assert os.listdir(tmp_path) == ["x.json"]
