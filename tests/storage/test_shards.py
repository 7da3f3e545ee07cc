"""Shards of a folder: how many there may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from radp.storage.errors import StoreError
from radp.storage.shards import ShardFiles


@pytest.mark.parametrize("count", (2**40, 10**30, -1, 1.5, "2", None))
def test_a_number_of_shards_that_no_folder_has_is_refused_at_once(tmp_path: Path, count: object) -> None:
    with pytest.raises(StoreError, match="its number of shards is"):
        ShardFiles(tmp_path).open(count)  # type: ignore[arg-type]
