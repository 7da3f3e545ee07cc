"""CommonRoad scenarios."""
