"""Argoverse 2: sensor logs and motion forecasting scenarios."""
