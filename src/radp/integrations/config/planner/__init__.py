"""The planner group."""
