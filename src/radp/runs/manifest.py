"""What a folder holds: one JSON file in it that names its format and version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from radp.runs.errors import BadInput
from radp.runs.files import write_json_atomically


@dataclass(frozen=True)
class Manifest:
    """How one kind of folder is described. `format` None: the file's name alone says what it is."""

    file: str
    format: str | None
    version: int
    holds: str  # for sentences: "scenario store"
    error: type[BadInput] = BadInput
    version_key: str = "version"
    older: tuple[int, ...] = ()  # versions that are read too

    def is_in(self, folder: Path) -> bool:
        return (folder / self.file).exists()

    def write(self, folder: Path, content: Mapping[str, Any]) -> None:
        """Format and version, then the content; whole or not at all."""
        head = {} if self.format is None else {"format": self.format}
        write_json_atomically(folder / self.file, {**head, self.version_key: self.version, **content})

    def read(self, folder: Path) -> dict[str, Any]:
        """All of it; the error is one sentence that names the file and what is wrong."""
        file = folder / self.file
        try:
            content = json.loads(file.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            raise self.error(f"{folder} holds no {self.holds}: {self.file} is missing") from None
        except (OSError, ValueError, RecursionError) as error:
            raise self.error(f"{file} is not readable JSON ({error})") from None
        if not isinstance(content, dict) or (self.format is not None and content.get("format") != self.format):
            raise self.error(f"{file} does not describe a {self.holds} of radp")
        version = content.get(self.version_key)
        if version not in (self.version, *self.older):
            raise self.error(f"{file} has version {version!r}; this radp reads version {self.version}")
        return content
