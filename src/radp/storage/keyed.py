"""Records by key, one file each."""

from __future__ import annotations

from pathlib import Path
from typing import Generic, TypeVar

from radp.runs.files import file_stem, make_folder, remove_temporaries, write_atomically
from radp.storage.codec import LEVEL, CodecError
from radp.storage.errors import StoreError
from radp.storage.records import from_bytes, to_bytes

Record = TypeVar("Record")


class RecordFolder(Generic[Record]):
    """Records of one kind by keys of any characters and length; several processes may write at the same time.

    A file is whole or not there, so a run that was killed goes on with the keys that are not in the folder.
    """

    def __init__(self, path: Path, kind: type[Record], suffix: str, level: int = LEVEL) -> None:
        self.path, self.kind, self.suffix, self.level = path, kind, suffix, level

    def clean(self) -> None:
        """Make the folder and remove what killed writers left behind; call it before writing starts."""
        remove_temporaries(make_folder(self.path))

    def file(self, key: str) -> Path:
        return self.path / f"{file_stem(key)}{self.suffix}"

    def __contains__(self, key: str) -> bool:
        return self.file(key).exists()

    def write(self, key: str, record: Record) -> None:
        """LostWrite if it cannot be kept."""
        write_atomically(self.file(key), to_bytes(record, self.level))

    def read(self, key: str) -> Record:
        """StoreError names the file that is missing or damaged."""
        file = self.file(key)
        try:
            return from_bytes(self.kind, file.read_bytes())
        except FileNotFoundError:
            raise StoreError(f"{file} is missing") from None
        except (OSError, CodecError) as error:
            raise StoreError(f"{file} cannot be read ({error})") from None
