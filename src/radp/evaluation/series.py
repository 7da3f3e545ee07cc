"""How well scores point at events, in many series at once.

Rows are scenarios, columns frames, a mask says which frames count. Every function takes (N, T) arrays and gives one
value per row, NaN where it is not defined.
"""

from __future__ import annotations

import numpy as np

from radp.statistics.ranks import ranks


def average_precision(score: np.ndarray, event: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """(N,) area under the precision-recall curve, steps at distinct scores; NaN unless both classes are there."""
    order = np.argsort(np.where(valid, -score, np.inf), axis=1, kind="stable")
    row = np.arange(len(score))[:, None]
    hits = np.cumsum((event & valid)[row, order], axis=1)
    seen = np.cumsum(valid[row, order], axis=1)
    sorted_score, sorted_valid = score[row, order], valid[row, order]
    end = sorted_valid.copy()  # only the last frame of a group of equal scores is a threshold
    end[:, :-1] &= (sorted_score[:, 1:] != sorted_score[:, :-1]) | ~sorted_valid[:, 1:]
    total = hits[:, -1:]
    recall = np.divide(hits, total, out=np.zeros(hits.shape), where=total > 0)
    precision = np.divide(hits, seen, out=np.zeros(hits.shape), where=seen > 0)
    reached = np.maximum.accumulate(np.where(end, recall, 0.0), axis=1)
    before = np.concatenate((np.zeros((len(score), 1)), reached[:, :-1]), axis=1)
    area = np.where(end, (recall - before) * precision, 0.0).sum(1)
    return np.where(_both_classes(event, valid), area, np.nan)


def lift(score: np.ndarray, event: np.ndarray, valid: np.ndarray, share: float = 0.1) -> np.ndarray:
    """(N,) event rate among the `share` of frames with the highest score, over the event rate of all valid frames.

    The number of chosen frames is rounded up. Frames that tie at the border count with the mean of their group, so
    the value does not depend on how ties are broken.
    """
    count = valid.sum(1)
    chosen = np.ceil(share * count - 1e-9)
    last = ranks(score, valid, "max")
    above = count[:, None] - last  # frames with a higher score
    group = 2 * (last - ranks(score, valid)) + 1  # frames with the same score, this one included
    part = np.clip((chosen[:, None] - above) / group, 0.0, 1.0) * valid
    hits = (part * event).sum(1)
    rate = (event & valid).sum(1) / np.maximum(count, 1)
    value = np.divide(hits / np.maximum(chosen, 1), rate, out=np.full(len(score), np.nan), where=rate > 0)
    return np.where(_both_classes(event, valid), value, np.nan)


def _both_classes(event: np.ndarray, valid: np.ndarray) -> np.ndarray:
    positive = (event & valid).sum(1)
    return (positive > 0) & (positive < valid.sum(1))
