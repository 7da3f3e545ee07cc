"""Road maps from what logs have of them: lane centres, painted lines, road edges."""

from radp.sources.roads.build import BuiltRoad, build_road
from radp.sources.roads.draft import LaneDraft, RoadDraft, clean_line, clean_ring, lane_length

__all__ = ["BuiltRoad", "LaneDraft", "RoadDraft", "build_road", "clean_line", "clean_ring", "lane_length"]
