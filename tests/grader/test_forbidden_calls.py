"""Functions that are the whole exercise are noticed wherever they are called: at load, at run time, in packages."""

import importlib
import sys
import textwrap
import threading

import pytest

from course_grade.grading.assignment import AssignedExercise, Assignment
from course_grade.grading.grade import Grader
from course_grade.submission.submissions import read_submission
from course_kit.checker.forbidden_calls import CallWatcher, names_of
from course_kit.exercises import all_exercises, find

pytestmark = pytest.mark.usefixtures("lent_fork_servers")

# What a submission may try: the exercise, its code, and what has to be said of it.
CALLS = {
    "an option that does it all": (
        "grouped_query_attention",
        """
        import torch
        def grouped_query_attention(query, key, value):
            options = {"enable_" + "gqa": True}
            return torch.nn.functional.scaled_dot_product_attention(query, key, value, **options)
        """,
        "torch's scaled_dot_product_attention(enable_gqa=True)",
    ),
    "group norm": (
        "layer_norm",
        """
        from torch.nn.functional import group_norm as norm
        def layer_norm(x, gain, bias, eps=1e-5):
            flat = x.reshape(-1, x.shape[-1], 1).transpose(1, 2).reshape(-1, 1, x.shape[-1])
            return norm(flat, 1, eps=eps).reshape(x.shape) * gain + bias
        """,
        "torch's group_norm",
    ),
    "masked softmax of torch.masked": (
        "masked_softmax",
        """
        import torch
        def masked_softmax(scores, mask):
            mask = mask.broadcast_to(scores.shape)
            weights = getattr(torch.masked, "soft" + "max")(scores, -1, mask=mask)
            return weights.masked_fill(~mask, 0)
        """,
        "torch.masked.softmax",
    ),
    "operator of cross entropy": (
        "label_smoothing_loss",
        """
        import torch
        def label_smoothing_loss(logits, targets, smoothing, pad_id):
            loss = getattr(torch.ops.aten, "cross_" + "entropy_loss")
            return loss(logits, targets, None, 1, pad_id, smoothing)
        """,
        "torch's cross_entropy_loss",
    ),
    "the package's loss in chunks": (
        "label_smoothing_loss",
        """
        import torch
        def label_smoothing_loss(logits, targets, smoothing, pad_id):
            from course_kit.translator import fast_loss as chunked_loss
            return getattr(chunked_loss, "chunked_" + "label_smoothing_loss")(logits, targets, smoothing, pad_id)
        """,
        "course_kit.translator.fast_loss.chunked_label_smoothing_loss",
    ),
    "mask of nn.Transformer": (
        "causal_mask",
        """
        import torch
        def causal_mask(length):
            make = getattr(torch.nn.Transformer, "generate_square_" + "subsequent_mask")
            return make(length) == 0
        """,
        "torch.nn.generate_square_subsequent_mask",
    ),
    "sacrebleu": (
        "corpus_bleu",
        """
        def corpus_bleu(hypotheses, references):
            import sacrebleu
            bleu = sacrebleu.BLEU(tokenize="none", smooth_method="none", force=True)
            return bleu.corpus_score([" ".join(h) for h in hypotheses], [[" ".join(r) for r in references]]).score
        """,
        "sacrebleu.BLEU",
    ),
    "torchmetrics": (
        "corpus_bleu",
        """
        def corpus_bleu(hypotheses, references):
            from torchmetrics.functional.text import bleu_score as score
            return 100 * score([" ".join(h) for h in hypotheses], [[" ".join(r)] for r in references]).item()
        """,
        "torchmetrics.bleu_score",
    ),
    "a warper of transformers": (
        "top_p_filter",
        """
        import transformers
        WARPER = getattr(transformers, "TopP" + "LogitsWarper")
        def top_p_filter(logits, p):
            return WARPER(float(p))(None, logits[None])[0] if p < 1 else logits.clone()
        """,
        "transformers.TopPLogitsWarper",
    ),
    "attention in a thread": (
        "scaled_dot_product_attention",
        """
        import math, threading, torch
        import torch.nn.functional as F
        def scaled_dot_product_attention(query, key, value, mask=None):
            kept = []
            call = getattr(F, "scaled_dot_" + "product_attention")
            thread = threading.Thread(target=lambda: kept.append(call(query, key, value, mask)))
            thread.start(); thread.join()
            weights = (query @ key.mT / math.sqrt(key.shape[-1])).softmax(-1)
            return kept[0], weights
        """,
        "torch's scaled_dot_product_attention",
    ),
    "autograd in a derivative by hand": (
        "softmax_backward",
        """
        import torch
        def softmax_backward(weights, grad_weights):
            with torch.enable_grad():
                scores = weights.detach().log().requires_grad_()
                return torch.autograd.grad(scores.softmax(-1), scores, grad_weights)[0]
        """,
        "torch.autograd.grad",
    ),
    "a table that the reference fills at load": (
        "causal_mask",
        """
        import course_lib as lib
        TABLE = {n: getattr(lib, "causal_" + "mask")(n) for n in range(40)}
        def causal_mask(length):
            return TABLE[length].clone()
        """,
        "course_lib.causal_mask",
    ),
}
# Right solutions that call something of the same name, or what another exercise may not.
HONEST = {
    "own function of the name": (
        "causal_mask",
        """
        import torch
        def generate_square_subsequent_mask(n):
            return torch.ones(n, n, dtype=torch.bool).tril()
        def causal_mask(length):
            return generate_square_subsequent_mask(length)
        """,
    ),
    "softmax inside attend": (
        "attend",
        """
        import torch
        def attend(scores, value):
            weights = torch.softmax(scores, -1)
            return weights @ value, weights
        """,
    ),
    "a derivative that a checkpoint takes": (
        "softmax_backward",
        """
        from torch.utils.checkpoint import checkpoint
        def softmax_backward(weights, grad_weights):
            def rule(w, g):
                return w * (g - (w * g).sum(-1, keepdim=True))
            return checkpoint(rule, weights, grad_weights, use_reentrant=True)
        """,
    ),
    "a compiled helper": (
        "scaled_dot_product_attention",
        """
        import torch
        @torch.compile(backend="eager", dynamic=True)
        def scaled(q, k):
            return q @ k.mT * q.shape[-1] ** -0.5
        def scaled_dot_product_attention(query, key, value, mask=None):
            scores = scaled(query, key)
            if mask is not None:
                scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
            weights = torch.softmax(scores, -1)
            return weights @ value, weights
        """,
    ),
    "the package's other functions at load": (
        "attend",
        """
        import course_lib, torch
        TABLE = course_lib.causal_mask(3)
        def attend(scores, value):
            assert TABLE[0, 0]
            weights = torch.softmax(scores, -1)
            return weights @ value, weights
        """,
    ),
}


@pytest.fixture(scope="module")
def graders():
    made: dict[str, Grader] = {}

    def of(*names) -> Grader:
        key = " ".join(names)
        if key not in made:
            made[key] = Grader(Assignment(tasks=tuple(map(AssignedExercise, names)), seed=5))
        return made[key]

    yield of
    for grader in made.values():
        grader.close()


def graded(graders, tmp_path, code, *names):
    path = tmp_path / "ada.py"
    path.write_text(textwrap.dedent(code))
    return graders(*names).grade(read_submission("ada", [path])).tasks


@pytest.mark.parametrize("name", CALLS)
def test_a_function_that_is_the_whole_exercise_does_not_count(name, graders, tmp_path):
    exercise, code, shown = CALLS[name]
    (task,) = graded(graders, tmp_path, code, exercise)
    assert (task.status, task.points) == ("not counted", 0.0), task.text
    assert shown in task.note, task.note


@pytest.mark.parametrize("name", HONEST)
def test_what_is_not_the_whole_exercise_counts(name, graders, tmp_path):
    exercise, code = HONEST[name]
    (task,) = graded(graders, tmp_path, code, exercise)
    assert task.status == "passed", task.text


def test_a_table_made_for_one_exercise_says_nothing_about_another(graders, tmp_path):
    code = """
        import course_lib, torch
        MASK = course_lib.causal_mask(3)
        def attend(scores, value):
            assert MASK[0, 0]
            weights = torch.softmax(scores, -1)
            return weights @ value, weights
        def causal_mask(length):
            return torch.ones(length, length, dtype=torch.bool).tril()
    """
    assert [task.status for task in graded(graders, tmp_path, code, "attend", "causal_mask")] == ["passed", "passed"]


def test_the_watcher_leaves_profilers_as_they_were():
    before = sys.getprofile(), threading.getprofile()
    with CallWatcher(find("softmax")):
        assert sys.getprofile() is not before[0]
    assert (sys.getprofile(), threading.getprofile()) == before


DOTTED = sorted(
    {
        twin
        for e in all_exercises().values()
        for twin in e.forbidden
        if twin.startswith(("torch.", "course_lib.", "course_kit."))
    }
)


@pytest.mark.parametrize("twin", DOTTED)
def test_every_dotted_twin_still_exists(twin):
    """A name that has gone would be watched in vain."""
    module, _, name = twin.rpartition(".")
    importlib.import_module(module)
    inside = [m for n, m in sys.modules.items() if n == module or n.startswith(f"{module}.")]
    classes = [thing for m in inside for thing in vars(m).values() if isinstance(thing, type)]
    assert any(hasattr(place, name) for place in [*inside, *classes])


def test_the_names_that_may_be_in_use_are_the_exercises_own():
    assert "torch's softmax" in names_of(find("softmax"))
    assert "course_lib.softmax" in names_of(find("softmax"))
    assert "torch.masked.softmax" in names_of(find("masked_softmax"))
