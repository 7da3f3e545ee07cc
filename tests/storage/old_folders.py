"""Small folders that radp 0.1.0 wrote.

The archive also holds what 0.1.0 read from them (known.json) and the program that made them (made_by.py). Absolute
paths in the configurations of runs stand there as {here}.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

ARCHIVE = Path(__file__).with_name("written_by_0_1_0.tar.xz")


def unpack(folder: Path) -> None:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    for config in folder.glob("runs/*/config.json"):
        config.write_text(config.read_text().replace("{here}", str(folder)))
