"""Run folders and the one map over many independent pieces."""
