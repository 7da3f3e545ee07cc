import pytest

from radp.bench import engines
from radp.runs.engine import Engine, use_engine


def test_waiting_pieces_show_what_the_engine_takes(tmp_path, monkeypatch):
    """Pieces of 20 ms in this process: the gaps between them are short, and all pieces are counted."""
    monkeypatch.setattr(engines, "PIECE_S", 0.02)
    with use_engine(Engine("local")):
        found = engines.waiting(1, tmp_path)
    assert found["pieces_per_s"] < 1 / 0.02
    assert found["overhead_share"] == pytest.approx(found["overhead_ms"] / 20.0)
    assert found["overhead_ms"] > 0 and found["begin_s"] >= 0 and found["driver_cpu_ms"] > 0
