"""What a planner sees at one moment: Scene tensors, their normalisation and their files."""
