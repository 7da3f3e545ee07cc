"""Where training reads from: one folder of samples, or several in fixed shares of every batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from radp.runs.errors import BadInput
from radp.scene.builder import FUTURE, SceneConfig
from radp.scene.log_samples import LOGS, LogSamples
from radp.scene.npz import NpzFolder
from radp.scene.samples import SAMPLES, Samples, SampleStore
from radp.scene.scene import Scene
from radp.storage.shards import check_rows
from radp.training.encounters import Encounters
from radp.training.loop import shuffled_rows


def open_samples(path: Path | str, scenes: SceneConfig, future: int = FUTURE) -> Samples:
    """Log samples (built as `scenes` says), a sample store, or a folder of the published .npz files.

    Samples whose egos may have fewer than `future` frames of log ahead are refused. What is missing is padded: rules
    can do without it, the diffusion loss leaves it out but needs a little, the losses of other planners need it all.
    """
    path = Path(path)
    if not path.is_dir():
        raise BadInput(f"{path} is no folder of samples")
    if not SAMPLES.is_in(path):
        return NpzFolder(path)
    if LOGS.describes(path):
        samples = LogSamples.open(path, scenes)
        if samples.future < future:
            raise BadInput(f"{path} holds samples with {samples.future} frames of future, this training needs {future}")
        return samples
    if SAMPLES.describes(path):
        return SampleStore.open(path)
    raise BadInput(f"{path / SAMPLES.file} does not describe samples made by radp data samples")


def open_all(
    paths: Sequence[Path], scenes: SceneConfig, future: int = FUTURE, encounters: int = 0
) -> Samples | Mixture:
    """One folder of samples, or several in a row; then so many encounters made of each sample, folder by folder."""
    found = [open_samples(path, scenes, future) for path in paths]
    found += [Encounters(samples, encounters) for samples in found if encounters]
    return found[0] if len(found) == 1 else Mixture(found)


class Mixture:
    """Several sources of samples in one row, each with a fixed share of every batch.

    One source alone gives the rows of `shuffled_rows`. Small sources repeat sooner than large ones.
    """

    def __init__(self, sources: Sequence[Samples], shares: Sequence[float] | None = None) -> None:
        self.sources = tuple(sources)
        self.shares = np.array([len(source) for source in sources] if shares is None else shares, dtype=np.float64)
        if len(self.shares) != len(self.sources) or not (np.isfinite(self.shares) & (self.shares > 0)).all():
            raise BadInput(f"{len(self.sources)} folders of samples need as many shares, all positive")
        self.shares /= self.shares.sum()
        self._starts = np.concatenate(([0], np.cumsum([len(source) for source in sources]))).astype(np.int64)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def counts(self, batch: int) -> list[int]:
        """Samples of each source in a batch: largest remainders first."""
        exact = self.shares * batch
        counts = np.floor(exact).astype(int)
        counts[np.argsort(counts - exact, kind="stable")[: batch - counts.sum()]] += 1
        for source, count in zip(self.sources, counts):
            if not 0 < count <= len(source):
                raise BadInput(f"a batch of {batch} takes {count} samples from a folder of {len(source)}")
        return counts.tolist()

    def rows(self, batch: int, step: int, seed: int) -> np.ndarray:
        """(batch,) positions of the samples of a step."""
        parts = [
            start + shuffled_rows(len(source), count, step, seed + 1_000 * k)
            for k, (source, count, start) in enumerate(zip(self.sources, self.counts(batch), self._starts))
        ]
        rows = np.concatenate(parts)
        return rows if len(parts) == 1 else np.random.default_rng([seed, step]).permutation(rows)

    def read(self, indices: Sequence[int] | np.ndarray) -> Scene:
        """(B,) positions -> Scene of B samples in that order, with futures."""
        rows = check_rows(indices, len(self))
        owner = np.searchsorted(self._starts, rows, "right") - 1
        used = np.unique(owner)
        scenes = [self.sources[k].read(rows[owner == k] - self._starts[k]) for k in used]
        if len(scenes) == 1:
            return scenes[0]
        placed = np.concatenate([np.flatnonzero(owner == k) for k in used])
        return Scene.cat(scenes)[np.argsort(placed).tolist()]
