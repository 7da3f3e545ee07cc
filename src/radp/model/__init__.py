"""The Diffusion Planner: configuration, network, noise schedule, loss, sampler and checkpoints."""
