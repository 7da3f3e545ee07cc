"""Tables of series with ties and gaps, for property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st


@st.composite
def tables(draw):
    """Two tables of values (N, T), which frames are valid, which are events."""
    rows, frames = draw(st.integers(1, 6)), draw(st.integers(1, 40))
    levels = draw(st.sampled_from([2, 5, 1000]))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    a, b = rng.integers(0, levels, (2, rows, frames)) / levels
    return a, b, rng.random((rows, frames)) < draw(st.sampled_from([0.3, 0.9, 1.0])), rng.random((rows, frames)) < 0.3
