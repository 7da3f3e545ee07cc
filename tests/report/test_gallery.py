"""One picture with one scenario of each kind."""

from __future__ import annotations

from radp.cli.main import main
from radp.report.gallery import one_of_each_kind
from radp.scenario.splits import open_split


def test_one_of_each_kind_takes_the_asked_one_or_the_last():
    split = open_split("sumo14-val")
    scenarios = [split[i] for i in (0, 1, 2, 20, 21)]
    first, second = one_of_each_kind(scenarios), one_of_each_kind(scenarios, skip=2)
    assert [s.kind for s in first] == sorted({s.kind for s in scenarios})
    of_first = [s.token for s in scenarios if s.kind == first[0].kind]
    assert first[0].token == of_first[0] and second[0].token == of_first[min(2, len(of_first) - 1)]


def test_the_picture_is_written(tmp_path, monkeypatch):
    split = open_split("sumo14-val")
    monkeypatch.setattr("radp.scenario.splits.open_split", lambda name: split[:2])
    assert main(["data", "gallery", "--scenarios", "any", "--out", str(tmp_path / "g.png")]) == 0
    assert (tmp_path / "g.png").read_bytes().startswith(b"\x89PNG")
