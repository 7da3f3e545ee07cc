"""Planners: everything that turns an observation into a plan."""
