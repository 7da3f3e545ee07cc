"""What a folder holds: one JSON file in it that names its format and version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from radp.runs.errors import BadInput
from radp.runs.files import write_json_atomically
from radp.runs.settings import as_json, first_difference


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

    def describes(self, folder: Path) -> bool:
        """Whether the folder says that it holds this, of whatever version."""
        try:
            return json.loads((folder / self.file).read_bytes()).get("format") == self.format
        except (OSError, ValueError, RecursionError, AttributeError):
            return False

    def write(self, folder: Path, content: Mapping[str, Any]) -> None:
        """Format and version, then the content; whole or not at all."""
        head = {} if self.format is None else {"format": self.format}
        write_json_atomically(folder / self.file, {**head, self.version_key: self.version, **content})

    def begin(self, folder: Path, content: Mapping[str, Any]) -> None:
        """Describe a new folder; one that is described already must say the same."""
        if not self.is_in(folder):
            self.write(folder, content)
            return
        found = self.read(folder)
        if found[self.version_key] != self.version:
            raise self.error(f"{folder} was begun by an earlier radp: it can be read, but not taken up again")
        if difference := first_difference({name: found.get(name) for name in content}, as_json(content)):
            raise self.error(
                f"{folder} holds another {self.holds} ({difference}); choose another folder or delete this one"
            )

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
