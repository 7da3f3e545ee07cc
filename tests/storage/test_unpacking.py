"""Compressed files of others: what would fill the memory is refused before it is allocated."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from radp.storage import unpacking
from radp.storage.unpacking import gunzip, parse_json, read_npz_arrays


def test_gzip_is_unpacked_up_to_its_bound() -> None:
    packed = gzip.compress(bytes(3000))
    assert gunzip(packed, 3000) == bytes(3000) and gunzip(b"plain", 1) == b"plain"
    with pytest.raises(ValueError, match="it holds more than"):
        gunzip(packed, 2999)
    with pytest.raises(EOFError, match="cut short"):
        gunzip(packed[:-9], 3000)


def test_json_is_bounded_by_bytes_containers_values_and_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse_json(b'{"a": [1, 2]}') == {"a": [1, 2]}
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json(b"[" * 100_000)
    for name, text in (("BYTES", b'"abc"'), ("CONTAINERS", b"[[], []]"), ("VALUES", b"[1, 2, 3]")):
        with monkeypatch.context() as patch:
            patch.setattr(unpacking, f"MOST_JSON_{name}", 1)
            with pytest.raises(ValueError, match="it holds more"):
                parse_json(text)


def test_only_the_wanted_arrays_of_an_npz_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.npz"
    np.savez_compressed(file, small=np.arange(3), large=np.zeros(10_000))
    monkeypatch.setattr(unpacking, "MOST_NPZ_BYTES", 1000)
    found = read_npz_arrays(file, ("small", "absent"))
    assert list(found) == ["small"] and found["small"].tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="its arrays hold more than"):
        read_npz_arrays(file)


def test_an_array_is_no_longer_than_the_archive_says(tmp_path: Path) -> None:
    """A head that asks for 8 TB."""
    head = b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }".ljust(
        117
    )
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", head + b"\n" + bytes(80))
    with pytest.raises((ValueError, MemoryError)):
        read_npz_arrays(tmp_path / "a.npz")


def test_json_files_of_others_go_through_the_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from radp.scenario import neutral_json

    file = tmp_path / "a.json.gz"
    file.write_bytes(gzip.compress(json.dumps({"token": " " * 10_000}).encode()))
    monkeypatch.setattr(neutral_json, "MOST_JSON_BYTES", 5000)
    with pytest.raises(neutral_json.NeutralJsonError, match="it holds more than 0 MB"):
        neutral_json.load_json(file)


def test_a_part_that_is_no_array_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", sound=np.arange(3))
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as archive:
        archive.writestr("other.npy", b"no array")
    assert list(read_npz_arrays(tmp_path / "a.npz", ["sound"])["sound"]) == [0, 1, 2]
    with pytest.raises(ValueError, match="other is no array"):
        read_npz_arrays(tmp_path / "a.npz")
