"""Seam and plan apart: parts worked out by hand, and no table where a drive keeps no shares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from radp.report.seam_table import part_of, seam_tables
from radp.sim.settings import DriveOptions
from radp.sim.simulate import undriven
from radp.sources.synthetic import make_scenario


def test_parts_by_hand_and_the_table():
    drive = undriven(make_scenario(0, agents=2, frames=12), "idm", DriveOptions(), "not driven")
    assert seam_tables([drive], "here") == []
    pressure = np.log1p(np.array([[5.0, 0.0], [10.0, 2.0]]))  # as multiples of the usual gradient
    share = np.array([[0.36, 0.0], [1.0, 0.0]])
    np.testing.assert_allclose(part_of(pressure, share), np.log1p([[3.0, 0.0], [10.0, 0.0]]))
    np.testing.assert_allclose(part_of(pressure, 1 - share), np.log1p([[4.0, 0.0], [0.0, 2.0]]), atol=1e-12)
    taught = replace(drive, exact_pressures=pressure, seam_shares=share, rules=("comfort", "goal"))
    (table,) = seam_tables([taught, drive], "here")
    comfort, goal = table.rows
    assert comfort[0] == "comfort" and comfort[-1] == "100 %"
    assert float(comfort[3]) == pytest.approx(np.log1p(4.0) / 2, abs=1e-3) and goal[2] == "0.000"
    assert "Means over 2 plans" in table.notes[0]
