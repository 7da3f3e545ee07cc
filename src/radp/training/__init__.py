"""Training: augmentation and the loops for base planner, alignment and attribution head."""
