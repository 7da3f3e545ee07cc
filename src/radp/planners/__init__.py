"""Planners: everything that turns an observation into a plan."""

from radp.planners.registry import UnknownPlanner, list_planners, load_planner
from radp.sim.planner import Planner, plan_from_world

__all__ = ["Planner", "UnknownPlanner", "list_planners", "load_planner", "plan_from_world"]
