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
    """Its loss is as steep as the batch says."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(1.0))

    def forward(self, batch):
        assert self.training  # whatever happened between the steps
        return batch.a * self.w


def run(slopes, *, clip_norm=0.0, model=None, **options):
    """Gradient descent at rates 0.1, 0.05, 0.025, …; weights when a batch is drawn and after its update, and losses."""
    model = (model or Line()).eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    before, weights, losses = [], [], []

    def batches():
        for a in slopes:
            before.append(model.w.item())
            yield Slope(torch.tensor(float(a)))

    runtime = OneDevice(torch.device("cpu"))
    for loss in updates(model, batches(), optimizer, schedule, clip_norm=clip_norm, runtime=runtime, **options):
        weights.append(model.w.item())
        losses.append(loss)
        model.eval()
    return before, weights, losses


def test_three_updates_by_hand():
    """Gradients 2, −3 and 4, each alone: none is left over from the step before."""
    before, weights, losses = run([2, -3, 4])
    assert weights == pytest.approx([1 - 0.2, 0.8 + 0.15, 0.95 - 0.1])
    # A batch is drawn right before its update, so that who yields them can fix the random draws of each step.
    assert before == [1.0, *weights[:-1]]
    assert [loss.item() for loss in losses] == pytest.approx([2.0, -3 * 0.8, 4 * 0.95])  # of the weights before
    assert not any(loss.requires_grad for loss in losses)  # their graphs would keep the activations of every step


def test_gradients_longer_than_the_clip_are_shortened_and_others_left_alone():
    _, weights, _ = run([0.5, -30, 4], clip_norm=2.0)
    assert weights == pytest.approx([1 - 0.05, 0.95 + 0.1, 1.05 - 0.05], rel=1e-5)


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


def test_an_objective_gives_the_loss_of_the_task():
    task = reversal()
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
    assert (result.losses, result.note) == ([7.0], "seven at step 1")
