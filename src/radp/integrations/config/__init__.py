"""Hydra configuration groups; `pkg://radp.integrations.config` in the search path finds them."""
