"""The training loop, step by step: computed by hand, and stopped before a step that would do harm."""

import math
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from course_kit.nn import Transformer
from course_kit.translator.recipe import Recipe
from course_kit.translator.trainer import train
from course_kit.workshop.tasks import reversal
from course_kit.workshop.train_on import train_on
from course_kit.workshop.training_loop import BadLossError, Objective, OneDevice, updates

RECIPE = Recipe(vocab_size=13, d_model=8, num_heads=1, num_layers=1, d_ff=8, precision="32-true")


class Slope(NamedTuple):
    """The loss is a · w."""

    a: Tensor


class Line(nn.Module):
    """Its loss is as steep as the batch says; what it drops out shows whether it trains."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(1.0))
        self.modes = []

    def forward(self, batch):
        self.modes.append(self.training)
        return batch.a * self.w


def run(slopes, *, clip_norm=0.0, model=None, **options):
    """Plain gradient descent at rates 0.1, 0.05, 0.025, …; the weight after each update, and the losses."""
    model = model or Line()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    weights, losses = [], []
    batches = (Slope(torch.tensor(float(a))) for a in slopes)
    runtime = OneDevice(torch.device("cpu"))
    for loss in updates(model, batches, optimizer, schedule, clip_norm=clip_norm, runtime=runtime, **options):
        weights.append(model.w.item())
        losses.append(loss.item())
    return weights, losses


def test_three_updates_by_hand():
    """Gradients 2, −3 and 4, each alone: none is left over from the step before."""
    weights, losses = run([2, -3, 4])
    assert weights == pytest.approx([1 - 0.2, 0.8 + 0.15, 0.95 - 0.1])
    assert losses == pytest.approx([2.0, -3 * 0.8, 4 * 0.95])  # of the weights before the update


def test_gradients_longer_than_the_clip_are_shortened_and_others_left_alone():
    weights, _ = run([0.5, -30, 4], clip_norm=2.0)
    assert weights == pytest.approx([1 - 0.05, 0.95 + 0.1, 1.05 - 0.05], rel=1e-5)


def test_the_losses_come_without_their_graphs():
    """A list of them would otherwise keep the activations of every step."""
    model = Line()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ConstantLR(optimizer)
    (loss,) = updates(
        model, [Slope(torch.tensor(1.0))], optimizer, schedule, clip_norm=0, runtime=OneDevice(torch.device("cpu"))
    )
    assert not loss.requires_grad


def test_the_model_is_in_training_mode_at_each_step_whatever_happened_between():
    model = Line().eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ConstantLR(optimizer)
    batches = [Slope(torch.tensor(1.0))] * 3
    for _ in updates(model, batches, optimizer, schedule, clip_norm=0, runtime=OneDevice(torch.device("cpu"))):
        model.eval()
    assert model.modes == [True] * 3


def test_a_batch_is_drawn_right_before_its_update():
    """The code that yields the batches can therefore fix the random draws of each step."""
    model, seen = Line(), []

    def batches():
        for _ in range(3):
            seen.append(model.w.item())
            yield Slope(torch.tensor(1.0))

    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    schedule = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)
    for _ in updates(model, batches(), optimizer, schedule, clip_norm=0, runtime=OneDevice(torch.device("cpu"))):
        pass
    assert seen == [1.0, 0.0, -1.0]


@pytest.mark.parametrize("slope", [math.nan, math.inf])
def test_no_update_is_made_from_a_loss_that_is_not_finite(slope):
    model = Line()
    with pytest.raises(BadLossError, match=f"the loss became {slope}") as caught:
        run([2, slope, 3], model=model)
    assert model.w.item() == pytest.approx(0.8)
    assert str(caught.value.loss) == str(slope)
    run([2, slope], model=model, check_loss=False)  # as on a GPU, where nothing waits for the loss
    assert not math.isfinite(model.w.item())


def test_a_loss_that_depends_on_no_parameter_is_refused():
    class Constant(Line):
        def forward(self, batch):
            return batch.a

    with pytest.raises(BadLossError, match="the loss does not depend on any parameter"):
        run([2], model=Constant())


def test_an_objective_checks_the_model_and_gives_the_loss_of_the_task():
    task = reversal()
    with pytest.raises(TypeError, match="reversal needs an encoder–decoder"):
        Objective(nn.Linear(2, 2), task)
    model, batch = Transformer(RECIPE.model_config()).eval(), task.held_out(3)
    assert torch.equal(Objective(model, task)(batch), task.loss(model, batch))


def test_train_and_train_on_run_this_loop(monkeypatch):
    """Both stop where it stops."""

    def stop(*arguments, **options):
        raise BadLossError(7.0, "seven")
        yield

    for place in ("course_kit.workshop.train_on", "course_kit.translator.trainer"):
        monkeypatch.setattr(f"{place}.updates", stop)
    with pytest.raises(FloatingPointError, match="seven at step 1"):
        train(reversal(), RECIPE, accelerator="cpu", show_progress=False)
    result = train_on(Transformer(RECIPE.model_config()), reversal(), num_fresh=5, show_progress=False)
    assert result.losses == [7.0]
    assert "seven at step 1" in result.note
