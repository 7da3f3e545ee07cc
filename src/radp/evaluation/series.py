"""Statistics of many series at once: rows are scenarios, columns frames, a mask says which frames count.

Every function takes (N, T) arrays and gives one value per row, NaN where it is not defined.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def ranks(values: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Average ranks from 1 within the valid frames of each row; 0 elsewhere. Ties share their mean rank."""
    rows, count = values.shape
    out = np.zeros((rows, count))
    for i in range(rows):
        frames = np.flatnonzero(valid[i])
        row = values[i]
        order = frames[np.argsort(row[frames])]
        first = 0
        while first < len(order):
            last = first
            while last + 1 < len(order) and row[order[last + 1]] == row[order[first]]:
                last += 1
            for k in range(first, last + 1):
                out[i, order[k]] = (first + last) / 2 + 1
            first = last + 1
    return out


def spearman(a: np.ndarray, b: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """(N,) rank correlation of a and b over the valid frames; NaN where either is constant."""
    return correlation(ranks(a, valid), ranks(b, valid), valid)


def correlation(a: np.ndarray, b: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """(N,) Pearson correlation over the valid frames; NaN where either is constant or nothing is valid."""
    count = np.maximum(valid.sum(1, keepdims=True), 1)
    da = np.where(valid, a - (a * valid).sum(1, keepdims=True) / count, 0.0)
    db = np.where(valid, b - (b * valid).sum(1, keepdims=True) / count, 0.0)
    scale = np.sqrt((da**2).sum(1) * (db**2).sum(1))
    return np.divide((da * db).sum(1), scale, out=np.full(len(a), np.nan), where=scale > 0)


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
    above = count[:, None] - _max_ranks(score, valid)  # frames with a higher score
    group = _group_sizes(score, valid)
    part = np.clip((chosen[:, None] - above) / np.maximum(group, 1), 0.0, 1.0) * valid
    hits = (part * event).sum(1)
    rate = (event & valid).sum(1) / np.maximum(count, 1)
    value = np.divide(hits / np.maximum(chosen, 1), rate, out=np.full(len(score), np.nan), where=rate > 0)
    return np.where(_both_classes(event, valid), value, np.nan)


def _both_classes(event: np.ndarray, valid: np.ndarray) -> np.ndarray:
    positive = (event & valid).sum(1)
    return (positive > 0) & (positive < valid.sum(1))


def _group_sizes(values: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """How many valid frames of the row have the same value, this one included."""
    return 2 * (_max_ranks(values, valid) - ranks(values, valid)) + valid


def _max_ranks(values: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Largest rank within each group of ties; 0 where not valid."""
    order = np.argsort(np.where(valid, values, np.inf), axis=1, kind="stable")
    row = np.arange(len(values))[:, None]
    sorted_values, sorted_valid = values[row, order], valid[row, order]
    count = values.shape[1]
    is_last = np.ones_like(sorted_valid)
    is_last[:, :-1] = (sorted_values[:, 1:] != sorted_values[:, :-1]) | (sorted_valid[:, 1:] != sorted_valid[:, :-1])
    place = np.broadcast_to(np.arange(count), values.shape)
    last = np.minimum.accumulate(np.where(is_last, place, count)[:, ::-1], axis=1)[:, ::-1]
    out = np.zeros(values.shape)
    out[row, order] = np.where(sorted_valid, last + 1, 0.0)
    return out
