"""Controls of the temporal protocol that keep the clock: what a score gets without knowing anything of this drive.

Scenarios start a fixed time before the moment they were chosen for, so risk has a typical course over a drive, and so
has pressure. Shuffling a score within its drive destroys that course along with everything else; these do not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from radp.evaluation.endpoints import MIN_FRAMES
from radp.evaluation.series import average_precision
from radp.statistics.bootstrap import known_mean
from radp.statistics.groups import members
from radp.statistics.ranks import spearman

OTHERS = 10  # other drives whose scores are tried on each drive


def clock(lengths: np.ndarray, count: int) -> np.ndarray:
    """(N, count): minus the number of the frame; NaN after the end of a drive of lengths (N,)."""
    frame = np.arange(count, dtype=np.float64)
    return np.where(frame < lengths[:, None], -frame, np.nan)


def other_drives(
    score: np.ndarray, risk: np.ndarray, threshold: float, logs: Sequence[str], seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Scores (N, T) of other drives against the risk (N, T) of each drive, frame by frame -> (N,) rho and AUPRC.

    The mean over ten other drives of other logs, fewer where there are not so many; NaN = none.
    """
    count, log = len(score), members(logs, len(score))
    shifts = np.random.default_rng([seed, count]).permutation(np.arange(1, count))[:OTHERS]
    rho, auprc = np.full((2, len(shifts), count), np.nan)
    for k, shift in enumerate(shifts):
        other = (np.arange(count) + shift) % count
        theirs = np.where((log != log[other])[:, None], score[other], np.nan)
        rho[k] = temporal_spearman(theirs, risk)
        valid = ~np.isnan(theirs) & ~np.isnan(risk)
        auprc[k] = average_precision(np.where(valid, theirs, 0.0), np.where(valid, risk, -np.inf) > threshold, valid)
    return known_mean(rho.T), known_mean(auprc.T)


def temporal_spearman(score: np.ndarray, risk: np.ndarray) -> np.ndarray:
    """(N, T), NaN where a frame does not count -> (N,); NaN with fewer than 20 valid frames or a constant series."""
    valid = ~np.isnan(risk) & ~np.isnan(score)
    risk, score = np.where(valid, risk, 0.0), np.where(valid, score, 0.0)
    return enough(spearman(score, risk, valid), valid)


def enough(values: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """values (N,) of rows with at least 20 valid frames (N, T); NaN for others."""
    return np.where(valid.sum(1) >= MIN_FRAMES, values, np.nan)
