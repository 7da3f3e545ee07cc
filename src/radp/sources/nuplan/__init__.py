"""nuPlan logs (.db) and maps (map.gpkg), read directly: no devkit is needed."""
