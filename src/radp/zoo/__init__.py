"""What is packaged: splits of scenarios (splits/NAME, a store) and models (models/NAME, with config.json)."""

from radp.zoo.models import list_models, model_path
from radp.zoo.splits import JsonScenarios, Split, list_splits, open_split

__all__ = ["JsonScenarios", "Split", "list_models", "list_splits", "model_path", "open_split"]
