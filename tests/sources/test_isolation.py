"""A log that crashes, hangs or fills the memory costs only itself."""

from __future__ import annotations

import ctypes
import gzip
import json
import lzma
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from radp.cli.main import main
from radp.scenario import Scenario
from radp.scenario.store import ScenarioStore
from radp.sources import convert as machinery
from radp.sources.convert import FileItem, SourceError, convert
from radp.sources.log_files import read_bytes
from radp.sources.settings import LogChoice
from radp.storage.unpacking import unpack
from tests.small_scenarios import small_scenario
from tests.sources.hostile_pickles import HOSTILE

WAYS = {
    "crash": "crashed (SIGSEGV)",
    "kill": "died",
    "memory": "more memory than it may take",
    "spin": "longer than a piece may take",
    "sleep": "longer than a piece may take",
}


@dataclass(frozen=True)
class Dangerous:
    """Two good logs, and between them those that end in a way of their own."""

    name: str = "dangerous"

    def items(self, logs: LogChoice) -> list[FileItem]:
        return [FileItem(name, Path(name)) for name in ("one", *WAYS, "two")]

    def scenarios(self, item: FileItem) -> Iterator[Scenario]:
        if item.name == "crash":
            ctypes.string_at(0)
        elif item.name == "kill":
            os.kill(os.getpid(), 9)
        elif item.name == "memory":
            bytearray(1 << 44)
        elif item.name == "spin":
            while True:
                pass
        elif item.name == "sleep":
            time.sleep(1e6)
        yield small_scenario(token=item.name)


def test_the_logs_beside_it_are_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machinery, "MOST_SECONDS", 0.3)
    card = convert(Dangerous(), LogChoice(data=tmp_path), tmp_path / "out")
    assert ScenarioStore.open(tmp_path / "out").tokens() == ["one", "two"]
    assert set(card["failed"]) == set(WAYS)
    for way, words in WAYS.items():
        assert words in card["failed"][way], way
    ledger = [json.loads(line) for line in (tmp_path / "out" / "ledger.jsonl").read_text().splitlines()]
    assert {row["piece"] for row in ledger} == set(WAYS) and not any("\n" in row["reason"] for row in ledger)


def test_hostile_pickles_cost_only_themselves(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    import pickle

    from tests.sources.made_logs import scenarionet

    logs = tmp_path / "logs"
    logs.mkdir()
    for i, content in enumerate(HOSTILE.values()):
        (logs / f"bad{i}.pkl").write_bytes(content)
    (logs / "good.pkl").write_bytes(pickle.dumps(scenarionet()))
    out = tmp_path / "out"
    assert main(["data", "convert", "--source", "scenarionet", "--data", str(logs), "--out", str(out)]) == 1
    assert ScenarioStore.open(out).tokens() == ["made"]
    said = capfd.readouterr().out
    assert all(f"failed: bad{i}.pkl: " in said for i in range(len(HOSTILE))) and "Traceback" not in said


def test_compressed_bombs_are_refused_before_they_unfold(tmp_path: Path) -> None:
    assert read_bytes.__defaults__ == (512 << 20,)
    zeros = b"\0" * (1 << 20)
    (tmp_path / "x.gz").write_bytes(gzip.compress(zeros) * 9)
    (tmp_path / "x.xz").write_bytes(lzma.compress(zeros, preset=0) * 9)
    for name in ("x.gz", "x.xz"):
        assert len(read_bytes(tmp_path / name)) == 9 << 20
        with pytest.raises(SourceError, match=rf"^{name}: the file cannot be read \(it holds more than 8 MB\)"):
            read_bytes(tmp_path / name, 8 << 20)


def test_compressed_files_of_several_streams_are_read_whole(tmp_path: Path) -> None:
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"ab") + gzip.compress(b"cd" * 1000) + b"\0" * 8)
    (tmp_path / "x.xz").write_bytes(lzma.compress(b"ab") + lzma.compress(b"cd" * 1000))
    for name in ("x.gz", "x.xz"):
        assert read_bytes(tmp_path / name) == b"ab" + b"cd" * 1000
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-30])
        with pytest.raises(SourceError, match=f"^{name}: the file cannot be read"):
            read_bytes(tmp_path / name)


def test_a_dictionary_larger_than_the_memory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.xz").write_bytes(_with_dictionary(lzma.compress(b"ab", preset=0)))
    with pytest.raises(SourceError, match="cannot be read"):
        read_bytes(tmp_path / "x.xz")


def _with_dictionary(packed: bytes) -> bytes:
    """The same xz file, with a header that asks for a dictionary of 3 GB."""
    import zlib

    size = (packed[12] + 1) * 4
    header = bytearray(packed[12 : 12 + size - 4])
    place = header.index(0x21) + 2  # id of LZMA2, size of its properties, then the size of the dictionary
    header[place] = 39
    return packed[:12] + bytes(header) + zlib.crc32(header).to_bytes(4, "little") + packed[12 + size :]


def test_unpacking_counts_over_all_streams() -> None:
    packed = lzma.compress(b"a" * 1000)
    assert len(unpack(packed * 3, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), 3000)) == 3000
    with pytest.raises(ValueError, match="more than"):
        unpack(packed * 3, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), 2999)
