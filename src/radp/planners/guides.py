"""One RouteGuide for each scenario under way, and the line that the ego should follow now."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

from radp.planners.corridor import ego_on_line, gap_is_free
from radp.road.guide import GUIDE_SPACING, OVERRUN, RouteGuide, RouteLine
from radp.road.route import correct_route
from radp.scenario import Briefing, Ego, LightState
from radp.sim.observation import Observation

KEPT = 512  # scenarios; more than any batch


class GuideBook:
    """Guides by scenario, the ones used last are kept. `bends`: share of the usual speed at which bends are taken."""

    def __init__(self, bends: float = 1.0) -> None:
        self.bends = bends
        self._guides: OrderedDict[Briefing, RouteGuide] = OrderedDict()

    def guide(self, briefing: Briefing) -> RouteGuide:
        """The guide of a scenario."""
        if briefing not in self._guides:
            self._guides[briefing] = make_guide(briefing, self.bends)
            if len(self._guides) > KEPT:
                self._guides.popitem(last=False)
        self._guides.move_to_end(briefing)
        return self._guides[briefing]

    def line(self, observation: Observation, world: int) -> RouteLine:
        """The line under the ego, or its neighbour's when the route asks for a lane change and the gap is free."""
        guide = self.guide(observation.briefings[world])
        ego = observation.ego[world, -1]
        line = guide.line(guide.lane_at(ego))
        if line.change_to < 0:
            return line
        beside = guide.line(line.change_to)
        s, _, _ = ego_on_line(ego, beside.points, beside.headings, GUIDE_SPACING, beside.first_end + OVERRUN)
        agents, valid = observation.agents[world, -1], observation.agent_valid[world, -1]
        size = observation.agent_size[world]
        free = gap_is_free(s, ego[Ego.VX], agents, valid, size, beside.points, beside.headings, GUIDE_SPACING)
        return beside if free else line


def make_guide(briefing: Briefing, bends: float = 1.0) -> RouteGuide:
    """The guide of a scenario's corrected route."""
    route = correct_route(briefing.map, briefing.route, briefing.pose)
    return RouteGuide(briefing.map, route, briefing.pose, briefing.light_lanes, bends)


def stop_points(line: RouteLine, observation: Observation, world: int) -> tuple[np.ndarray, np.ndarray]:
    """Arc lengths (K,) of the lights on a line that are red or yellow now, and whether (K,) they are yellow."""
    lit = line.light >= 0
    if not lit.any():
        return np.zeros(0), np.zeros(0, dtype=np.bool_)
    state = observation.lights(world)[1][line.light[lit]]
    closed = (state == LightState.RED) | (state == LightState.YELLOW)
    return line.starts[lit][closed], state[closed] == LightState.YELLOW
