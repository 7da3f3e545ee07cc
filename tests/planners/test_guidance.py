import torch

from radp.planners.guidance import CollisionGuidance


def straight(batch: int = 1, speed: float = 5.0) -> torch.Tensor:
    """Ego and one neighbour drive side by side, the neighbour 1.0 m to the left of the ego's inflated box's reach."""
    steps = torch.arange(81) * 0.1
    trajectories = torch.zeros(batch, 2, 81, 4)
    trajectories[..., 2] = 1.0
    trajectories[:, 0, :, 0] = speed * steps
    trajectories[:, 1, :, 0] = speed * steps + 1.67
    trajectories[:, 1, :, 1] = 3.0
    return trajectories


def guidance(batch: int = 1, missing: bool = False) -> CollisionGuidance:
    return CollisionGuidance(
        torch.tensor([[[4.5, 2.0]]]).expand(batch, 1, 2), torch.full((batch, 1), missing, dtype=torch.bool)
    )


def test_the_push_goes_away_from_the_neighbour_and_never_along_the_road():
    gradient = guidance()(straight(), 0.05)
    assert (gradient[0, 0, :, 1] < 0).all()
    assert not gradient[0, 0, :, [0, 2, 3]].any() and not gradient[0, 1].any()


def test_following_the_gradient_makes_room():
    plan = straight()
    moved = plan + 0.2 * guidance()(plan, 0.05)
    pushes = [guidance().push(trajectories).abs().sum() for trajectories in (plan, moved)]
    assert moved[0, 0, :, 1].mean() < -0.3 and pushes[1] < pushes[0]


def test_missing_and_distant_neighbours_do_not_push():
    assert not guidance(missing=True)(straight(), 0.05).any()
    far = straight()
    far[:, 1, :, 1] = 30.0
    assert not guidance()(far, 0.05).any()


def test_each_sample_of_a_batch_is_on_its_own():
    near, far = straight(), straight()
    far[:, 1, :, 1] = 4.0
    both = torch.cat((near, far, near, far))
    pushes = guidance(batch=2)(both[:2].repeat_interleave(2, 0), 0.05)  # two samples of each of two scenes
    torch.testing.assert_close(pushes[0], guidance()(near, 0.05)[0])
    torch.testing.assert_close(pushes[3], guidance()(far, 0.05)[0])
    alone = guidance(batch=4)(both, 0.05)
    torch.testing.assert_close(alone[::2], pushes[:1].expand(2, -1, -1, -1))
