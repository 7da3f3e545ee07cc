from __future__ import annotations

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from radp.report.draw import draw_scenario
from radp.scenario import Ego
from tests.small_scenarios import small_scenario


def test_the_picture_is_centred_on_the_ego_and_holds_every_box() -> None:
    scenario, (figure, ax) = small_scenario(), plt.subplots()
    draw_scenario(scenario, ax, frame=3, reach=25.0)
    x, y = scenario.ego[scenario.start + 3, [Ego.X, Ego.Y]]
    assert ax.get_xlim() == (x - 25.0, x + 25.0)
    assert ax.get_ylim() == (y - 25.0, y + 25.0)
    outlined = [patch for patch in ax.patches if patch.get_linewidth() > 0 and patch.get_zorder() >= 5]
    assert len(outlined) == 1 + int(scenario.tracks.valid[:, scenario.start + 3].sum())
    plt.close(figure)
