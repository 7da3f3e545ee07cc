"""A planner that was exported with `radp export onnx`, in a process without torch."""

from radp.runtime.runtime import NoPlan, Runtime, RuntimePlan

__all__ = ["NoPlan", "Runtime", "RuntimePlan"]
