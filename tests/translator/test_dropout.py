"""`ByteDropout`: dropout with a byte of randomness per entry."""

import pytest
import torch
from torch import nn

from course_kit.translator.dropout import ByteDropout


@pytest.mark.parametrize(("p", "dropped"), [(0.3, 77), (255 / 256, 255)])
def test_what_is_kept_keeps_the_mean_and_its_gradient(p, dropped):
    x = torch.ones(400, 500, requires_grad=True)
    y = ByteDropout(p)(x)
    assert set(y.unique().tolist()) == {0.0, torch.tensor(256 / (256 - dropped)).item()}
    assert (y == 0).float().mean().item() == pytest.approx(dropped / 256, abs=0.005)
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], y)


def test_entries_are_dropped_independently():
    kept = (ByteDropout(0.5)(torch.ones(1001, 16)) != 0).float()  # sixteen bytes: two words per row
    assert (torch.corrcoef(kept.T) - torch.eye(16)).abs().max() < 0.15


@pytest.mark.parametrize("p", [0.0, 0.001, 0.999, 1.0])
def test_at_the_ends_and_outside_training_it_is_the_ordinary_one(p):
    """At the ends the nearest 256th is none or all."""
    drawn = []
    for layer in (ByteDropout(p), nn.Dropout(p)):
        torch.manual_seed(0)
        drawn.append(layer(torch.ones(1000, 40)))
    torch.testing.assert_close(*drawn)
    assert torch.equal(ByteDropout(0.5).eval()(torch.ones(7, 11)), torch.ones(7, 11))


def test_a_model_keeps_its_parameters_and_has_its_own_modules_again_afterwards():
    """The very same ones, even after an error."""
    model = nn.Sequential(nn.Dropout(0.25), nn.Linear(2, 3), nn.Sequential(nn.Dropout(0.5))).eval()
    modules, names = list(model.modules()), list(model.state_dict())

    def interrupted():
        with ByteDropout.inside(model):
            assert [(type(m), m.p, m.training) for m in (model[0], model[2][0])] == [
                (ByteDropout, 0.25, False),
                (ByteDropout, 0.5, False),
            ]
            assert list(model.state_dict()) == names
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert all(one is other for one, other in zip(model.modules(), modules, strict=True))
