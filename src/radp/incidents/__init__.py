"""What went wrong in a drive: each incident with its course, the rules that pressed, and what would have avoided it."""

from radp.incidents.explain import explain, explain_plan, explain_planner
from radp.incidents.incident import Explained, Incident

__all__ = ["Explained", "Incident", "explain", "explain_plan", "explain_planner"]
