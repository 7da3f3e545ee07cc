from __future__ import annotations

from pathlib import Path

import pytest

from radp.sources.sumo import programs


def test_a_missing_extra_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(programs, "import_module", refuse)
    with pytest.raises(ImportError, match=r"pip install 'radp\[sumo\]'"):
        programs.sumo_module("libsumo")


def test_a_refusing_program_says_why(tmp_path: Path) -> None:
    pytest.importorskip("sumo", reason="Eclipse SUMO is not installed")
    with pytest.raises(programs.SumoError, match="netconvert failed"):
        programs.run_program("netconvert", ["-n", "missing.nod.xml", "-o", "x.net.xml"], tmp_path)
