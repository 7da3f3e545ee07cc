import errno
import json
import os

import pytest

from radp.runs.errors import LostWrite
from radp.runs.files import (
    atomic_path,
    file_stem,
    make_folder,
    remove_temporaries,
    write_atomically,
    write_json_atomically,
)


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


def test_json_that_cannot_be_made_keeps_the_old_file(tmp_path):
    write_json_atomically(tmp_path / "a.json", {"b": 1, "a": [2.5, None]})
    with pytest.raises(TypeError):
        write_json_atomically(tmp_path / "a.json", {"x": {1, 2}})
    assert json.loads((tmp_path / "a.json").read_text()) == {"b": 1, "a": [2.5, None]}


def test_json_of_any_string_is_read_back(tmp_path):
    write_json_atomically(tmp_path / "a.json", {"half \udc80": "ü \ud800"})
    assert json.loads((tmp_path / "a.json").read_text()) == {"half \udc80": "ü \ud800"}


def test_leftovers_of_killed_writers_are_removed(tmp_path):
    (tmp_path / ".tmp-123-x.json").write_bytes(b"half")
    (tmp_path / "x.json").write_bytes(b"{}")
    remove_temporaries(tmp_path)
    assert os.listdir(tmp_path) == ["x.json"]


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_one_sentence_and_leaves_nothing_behind(tmp_path, monkeypatch):
    write_atomically(tmp_path / "a", b"old")
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(LostWrite, match=r"a cannot be written \(No space left on device\)"):
        write_atomically(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old" and os.listdir(tmp_path) == ["a"]


def test_folders_are_made_or_refused_in_a_sentence(tmp_path):
    write_atomically(tmp_path / "b" / "c" / "a", b"one")
    assert (tmp_path / "b" / "c" / "a").read_bytes() == b"one"
    for place in (tmp_path / "b" / "c" / "a" / "d", tmp_path / "b" / "c" / "a" / "d" / "e"):
        with pytest.raises(LostWrite, match="cannot be written"):
            write_atomically(place, b"two")
        with pytest.raises(LostWrite, match="cannot be made"):
            make_folder(place)


@pytest.mark.parametrize("name", ["a", "a/b", "..", "ünï c:d*", "%2F", "x" * 242, "x" * 243, "ü" * 400, "a" * 5000])
def test_any_name_is_a_file_name(tmp_path, name):
    stem = file_stem(name)
    write_atomically(tmp_path / f"{stem}.json.gz", b"one")
    assert (tmp_path / f"{stem}.json.gz").read_bytes() == b"one"
    assert file_stem(name) == stem != file_stem(f"{name}x") and file_stem(f"{name}x") != file_stem(f"{name}y")
