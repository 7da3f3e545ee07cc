"""What `radp runs show` says of a folder whose score cards were damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from radp.evaluation.state import _failed_drives
from radp.runs.errors import BadInput


@pytest.mark.parametrize(
    "content", (b'{"token": "a", "fail', b"[]\n", b'{"token": "a"}\n', b"\xff\xfe\n", b"[" * 100_000)
)
def test_damaged_cards_are_one_sentence(tmp_path: Path, content: bytes) -> None:
    assert _failed_drives(tmp_path) == {}
    (tmp_path / "cards.jsonl").write_bytes(content)
    with pytest.raises(BadInput, match=r"cards\.jsonl: not a readable list of score cards"):
        _failed_drives(tmp_path)
