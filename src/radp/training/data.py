"""Where training reads from, told by what a folder holds."""

from __future__ import annotations

import json
from pathlib import Path

from radp.runs.errors import BadInput
from radp.scene.builder import SceneConfig
from radp.scene.log_samples import FORMAT as LOG_FORMAT
from radp.scene.log_samples import LogSamples
from radp.scene.npz import NpzFolder
from radp.scene.samples import FORMAT as SAMPLE_FORMAT
from radp.scene.samples import MANIFEST, Samples, SampleStore


def open_samples(path: Path | str, scenes: SceneConfig) -> Samples:
    """Log samples (built as `scenes` says), a sample store, or a folder of the published .npz files."""
    path = Path(path)
    if not path.is_dir():
        raise BadInput(f"{path} is no folder of samples")
    if not (path / MANIFEST).exists():
        return NpzFolder(path)
    try:
        found = json.loads((path / MANIFEST).read_bytes()).get("format")
    except (ValueError, AttributeError):
        raise BadInput(f"{path / MANIFEST} is not readable") from None
    if found == LOG_FORMAT:
        return LogSamples.open(path, scenes)
    if found == SAMPLE_FORMAT:
        return SampleStore.open(path)
    raise BadInput(f"{path} holds {found!r}, expected samples made by radp data samples")
