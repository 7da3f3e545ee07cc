"""Hand-made scenes with padding of every kind, for tests."""

import torch

from radp.scene.scene import AgentColumn, Scene


def made_scene(
    batch: int = 3,
    agents: int = 32,
    lanes: int = 70,
    route_lanes: int = 25,
    static_objects: int = 5,
    seed: int = 0,
) -> Scene:
    """Random scene of the published sizes: two thirds of the rows valid, some futures truncated."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    def keep(*shape: int) -> torch.Tensor:
        return (torch.rand(*shape, generator=generator) < 2 / 3).float()

    past = normal(batch, agents, 21, 11) * 5
    past[..., 2:4] = torch.nn.functional.normalize(past[..., 2:4], dim=-1)
    past[..., AgentColumn.WIDTH : AgentColumn.LENGTH + 1] = torch.tensor([2.0, 4.5])
    past[..., AgentColumn.IS_VEHICLE :] = torch.tensor([1.0, 0.0, 0.0])
    agent_kept = keep(batch, agents, 1, 1)
    light = torch.nn.functional.one_hot(torch.randint(0, 4, (batch, lanes, 1), generator=generator), 4).float()
    road = torch.cat((normal(batch, lanes, 20, 8) * 10, light.expand(-1, -1, 20, -1)), -1)
    lane_kept = keep(batch, lanes, 1, 1)
    has_limit = (keep(batch, lanes, 1) * lane_kept[..., 0]) > 0
    ego = torch.zeros(batch, 10)
    ego[:, 2] = 1.0
    ego[:, 4] = 5.0
    ahead = (torch.arange(80) + 1) * 0.5
    truncated = torch.arange(80)[:, None] < torch.randint(20, 100, (batch, agents, 1, 1), generator=generator)
    return Scene(
        ego_current_state=ego,
        neighbor_agents_past=past * agent_kept,
        static_objects=normal(batch, static_objects, 10) * keep(batch, static_objects, 1),
        lanes=road * lane_kept,
        lanes_speed_limit=has_limit * 13.9,
        lanes_has_speed_limit=has_limit,
        route_lanes=(road * lane_kept)[:, :route_lanes].contiguous(),
        route_lanes_speed_limit=(has_limit * 13.9)[:, :route_lanes].contiguous(),
        route_lanes_has_speed_limit=has_limit[:, :route_lanes].contiguous(),
        ego_agent_future=torch.stack((ahead, 0.01 * ahead, 0.01 * torch.ones(80)), -1).repeat(batch, 1, 1),
        neighbor_agents_future=normal(batch, agents, 80, 3).clamp(-3, 3) * agent_kept * truncated,
    ).validate()
