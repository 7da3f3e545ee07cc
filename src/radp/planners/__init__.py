"""Planners: everything that turns an observation into a plan."""

from radp.planners.planner import Planner, plan_from_world
from radp.planners.registry import UnknownPlanner, list_planners, load_planner

__all__ = ["Planner", "UnknownPlanner", "list_planners", "load_planner", "plan_from_world"]
