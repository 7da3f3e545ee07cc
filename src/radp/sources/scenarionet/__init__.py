"""ScenarioNet pickles: Waymo Open Motion, nuScenes and others in one layout."""
