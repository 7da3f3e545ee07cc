"""The pickle machine: it reads plain data as Python does, and lets no file become code, pointers or bombs."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis.extra import numpy as some_numpy

from radp.sources.convert import SourceError
from radp.sources.scenarionet.unpickle import PickleMachine, load_plain
from tests.sources.hostile_pickles import HOSTILE
from tests.sources.made_logs import scenarionet

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pickle_is_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / "x.pkl").write_bytes(HOSTILE[name])
    with pytest.raises(SourceError, match=r"^x\.pkl: ") as caught:
        load_plain(tmp_path / "x.pkl")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_all_of_them_are_refused_within_a_gigabyte(tmp_path: Path) -> None:
    """In a process that may ask for no more: what a file asks for is looked at before it is allocated."""
    script = (
        "import resource, sys; from pathlib import Path; import radp.sources.scenarionet.unpickle as u\n"
        "used = int(next(l for l in open('/proc/self/status') if l.startswith('VmData')).split()[1]) << 10\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (used + (1 << 30),) * 2)\n"
        "for file in sorted(Path(sys.argv[1]).iterdir()):\n"
        "    try: u.load_plain(file)\n"
        "    except u.SourceError: continue\n"
        "    sys.exit(f'{file} was read')\n"
    )
    if sys.platform != "linux":
        pytest.skip("counts memory as Linux does")
    for i, content in enumerate(HOSTILE.values()):
        (tmp_path / f"{i}.pkl").write_bytes(content)
    done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-400:]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, dict):
        return type(one) is type(other) and list(one) == list(other) and all(same(one[k], other[k]) for k in one)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and (one == other or one != one)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_log_of_any_protocol_is_read_as_python_reads_it(tmp_path: Path, protocol: int) -> None:
    data = {
        **scenarionet(),
        "kinds": [np.zeros(3, dtype=d) for d in ("?", "i1", "u2", ">i4", "u8", "f2", ">f4", "f8", "U5", "S3")],
        "turned": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        "none": np.zeros((0, 3)),
        "scalars": [np.float32(1.5), np.int64(-3), np.bool_(True), np.str_("ab")],
        "others": ({1, "a"}, frozenset((1, 2)), OrderedDict(a=1), bytearray(b"x"), b"", b"\xff", "ä\n\\u", -(2**60)),
        "same": [[1, 2]] * 3,
    }  # fmt: skip
    (tmp_path / "x.pkl").write_bytes(pickle.dumps(data, protocol=protocol))
    assert same(data, load_plain(tmp_path / "x.pkl"))


PLAIN = some.recursive(
    some.none() | some.booleans() | some.integers(-(2**63), 2**63) | some.floats() | some.text() | some.binary()
    | some_numpy.arrays(some.sampled_from(("f8", "f4", "i8", "u1", "?", "U3")), some_numpy.array_shapes(min_side=0)),
    lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner) | some.tuples(inner, inner),
    max_leaves=20,
)  # fmt: skip


@given(PLAIN, some.sampled_from(PROTOCOLS))
def test_plain_values_come_back(value: Any, protocol: int) -> None:
    assert same(value, PickleMachine(pickle.dumps(value, protocol=protocol)).load())


def test_bytes_that_are_no_booleans_become_booleans(tmp_path: Path) -> None:
    """A byte of 7 in an array of booleans counts as seven where numpy counts them, and writes beyond an array's end."""
    raw = pickle.dumps({"x": np.array([True, False, True])}).replace(b"\x01\x00\x01", b"\x07\x00\xff")
    found = load_plain_of(tmp_path, raw)["x"]
    assert found.dtype == bool and found.tobytes() == b"\x01\x00\x01"


def load_plain_of(folder: Path, raw: bytes) -> dict[str, Any]:
    (folder / "x.pkl").write_bytes(raw)
    return load_plain(folder / "x.pkl")
