"""The views of the chapter on decoding, driven as readers drive them: mouse, keyboard, touch."""

import pytest
import torch
from driving import clean, everywhere, said
from shown import as_shown

from course_kit.viz import beam_tree, cache_work, next_token_bars

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

LAYOUTS = [(1000, "light", False), (390, "dark", True)]
layouts = pytest.mark.parametrize(("width", "scheme", "touch"), LAYOUTS)


def press(locator, touch):
    locator.tap() if touch else locator.click()


# The next token -------------------------------------------------------------------------------------------------------


def filtered(logits, temperature, k, p):
    """Temperature, top-k, top-p, softmax: the distribution that torch gives, by the rank of the logits."""
    z = logits.double().sort(descending=True).values / temperature
    if k != "all":
        z = z.masked_fill(z < z.topk(k).values[-1], -torch.inf)
    if p < 1:
        probabilities = z.softmax(0)
        z = z.masked_fill(probabilities.cumsum(0) - probabilities >= p, -torch.inf)
    return z.softmax(0)


def shown(page):
    """Number, width of the strong bar and whether it is struck out, of each row."""
    return page.evaluate(
        "[...document.querySelectorAll('.token')].map(r => [r.lastChild.textContent, "
        "+r.children[2].getAttribute('width'), getComputedStyle(r.firstChild).textDecorationLine == 'line-through'])"
    )


def set_to(page, temperature, k, p, sizes):
    for key, value in (("t", temperature), ("k", sizes.index(k)), ("p", p)):
        page.locator(f"[data-k={key}]").fill(str(value))


@pytest.mark.parametrize("vocabulary", [9, 40, 10_000])
@pytest.mark.parametrize(("width", "scheme"), [(1000, "light"), (390, "dark")])
def test_probabilities_are_torchs_in_the_same_order_of_filters(show, vocabulary, width, scheme):
    logits = torch.randn(vocabulary) * 2
    view = next_token_bars(logits, shown=12)
    seen = show(view, width=width, scheme=scheme)
    page, sizes = seen.page, view.data["sizes"]
    for temperature, k, p in [
        (1, "all", 1), (0.2, "all", 1), (2, "all", 0.9), (0.7, 5, 1), (1.5, 8, 0.6), (0.5, 1, 1), (1, "all", 0.05),
        (2, 8, 0.95), (1, 3, 0.35),
    ]:  # fmt: skip
        set_to(page, temperature, k, p, sizes)
        wanted = filtered(logits, temperature, k, p)
        bars = wanted[:12].tolist() + ([wanted[12:].sum().item()] if vocabulary > 12 else [])
        remain = int((wanted > 0).sum())
        entropy = torch.special.entr(wanted).sum().item()
        said(page, f"Of {vocabulary} tokens, {remain} remain; the entropy is {entropy:.3f} nats")
        assert said(page, " has ").endswith(f" has {wanted[0]:.3f}.")
        rows = shown(page)
        pale = (logits.double() / temperature).softmax(0).sort(descending=True).values
        longest = max(*bars, *pale[:12].tolist(), pale[12:].sum().item())
        full = next(x for x in (0.25, 0.5, 1) if x == 1 or x >= longest)
        assert page.locator("[data-k=full]").text_content() == f"{full:g}"
        assert [number for number, *_ in rows] == [f"{x:.3f}" for x in bars]
        assert [bar for _, bar, _ in rows] == pytest.approx([140 * x / full for x in bars], abs=1e-3)
        assert [out for *_, out in rows] == [x == 0 for x in bars]
    clean(seen)


def test_all_that_equal_the_kth_stay(show):
    logits = torch.tensor([1.0, 3.0, 1.0, 1.0, 0.0])
    page = show(next_token_bars(logits, list("abcde"))).page
    page.locator("[data-k=k]").fill("1")
    said(page, "Of 5 tokens, 4 remain")
    page.locator("[data-k=k]").fill("0")
    said(page, "Of 5 tokens, 1 remain; the entropy is 0.000 nats, and “b” has 1.000.")


def test_a_pale_bar_is_the_probability_before_the_filters(show):
    logits = torch.randn(6)
    page = show(next_token_bars(logits)).page
    set_to(page, 0.5, 2, 1, [1, 2])
    page.locator("[data-k=k]").fill("1")
    said(page, "Of 6 tokens, 2 remain")
    pale = page.evaluate("[...document.querySelectorAll('.token')].map(r => +r.children[1].getAttribute('width'))")
    before = (logits.double() / 0.5).softmax(0).sort(descending=True).values
    full = float(page.locator("[data-k=full]").text_content())
    assert pale == pytest.approx((140 / full * before).tolist(), abs=1e-3)


@layouts
def test_sliders_are_moved_by_keyboard_and_finger(show, width, scheme, touch):
    logits = torch.randn(30)
    seen = show(next_token_bars(logits, shown=5), width=width, scheme=scheme, touch=touch)
    page = seen.page
    page.locator("[data-k=k]").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    said(page, "Of 30 tokens, 19 remain")
    assert page.locator("[data-k=k-value]").text_content() == "19"
    assert page.locator("[data-k=k]").get_attribute("aria-valuetext") == "19"
    page.keyboard.press("End")
    said(page, "Of 30 tokens, 30 remain")
    assert page.locator("[data-k=k-value]").text_content() == "all"
    box = page.locator("[data-k=t]").bounding_box()
    press_at = page.touchscreen.tap if touch else page.mouse.click
    press_at(box["x"] + 2, box["y"] + box["height"] / 2)
    wanted = filtered(logits, 0.2, "all", 1)
    said(page, f"entropy is {torch.special.entr(wanted).sum():.3f} nats")
    assert page.locator("[data-k=t-value]").text_content() == "0.2"
    clean(seen)


# Beam search ----------------------------------------------------------------------------------------------------------

TOKENS = [["a", "b", "c"], ["x", "<eos>", "<eos>", "y"], ["<eos>", "z"]]
PARENTS = [[-1, -1, -1], [0, 2, 0, 2], [3, 3]]
LOG_PROBS = [[-0.4, -2.0, -1.0], [-1.5, -0.2, -2.0, -0.7], [-0.1, -3.0]]


def tree():
    return beam_tree(TOKENS, PARENTS, LOG_PROBS, 2)


def pick(page, token, after=""):
    return page.locator(f"[aria-label^='“{token}”{f' after “{after}”' if after else ','}']")


@layouts
def test_a_beam_is_pruned_by_hand_and_compared(show, width, scheme, touch):
    seen = show(tree(), width=width, scheme=scheme, touch=touch)
    page = seen.page
    steps = page.locator(".step")
    assert [step.is_visible() for step in steps.all()] == [True, False, False, False]
    assert page.locator(".sum:visible").count() == 0  # what the search keeps is not seen yet
    press(pick(page, "b"), touch)
    said(page, "1 more to pick.")
    assert pick(page, "b").get_attribute("aria-pressed") == "true"
    press(pick(page, "a"), touch)
    said(page, "You picked 1 of 2. Step 1 keeps “a” and “c”.")
    assert [step.is_visible() for step in steps.all()] == [True, True, False, False]
    assert steps.nth(0).locator("text.sum:visible").all_text_contents() == [
        "sum", "−0.400", "✓", "−1.000", "✓", "−2.000",
    ]  # fmt: skip
    assert steps.nth(1).locator(".sum:visible").count() == 0
    press(pick(page, "b"), touch)  # what was compared stays
    assert pick(page, "b").get_attribute("aria-pressed") == "true"
    assert not steps.nth(2).is_visible()
    press(pick(page, "<eos>", "c"), touch)
    press(pick(page, "y", "c"), touch)
    said(page, "You picked 2 of 2. Step 2 keeps “c <eos>” and “c y”.")
    press(pick(page, "z", "c y"), touch)
    press(pick(page, "<eos>", "c y"), touch)
    said(page, "You picked 2 of 2.")
    assert [step.is_visible() for step in steps.all()] == [True] * 4
    clean(seen)


def test_a_pick_can_be_taken_back_until_the_last(show):
    page = show(tree()).page
    pick(page, "b").click()
    said(page, "1 more to pick.")
    pick(page, "b").click()
    said(page, "2 more to pick.")
    pick(page, "c").click()
    pick(page, "a").click()
    said(page, "You picked 2 of 2.")


def test_it_is_pruned_by_keyboard(show):
    seen = show(tree())
    page = seen.page
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    said(page, "1 more to pick.")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("getComputedStyle(document.activeElement.querySelector('rect')).strokeWidth") == "4px"
    page.keyboard.press(" ")
    said(page, "You picked 2 of 2. Step 1 keeps “a” and “c”.")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.ariaLabel").startswith("“x” after “a”, log-probability −1.500")
    clean(seen)


@layouts
def test_the_penalty_changes_scores_and_winner(show, width, scheme, touch):
    seen = show(tree(), width=width, scheme=scheme, touch=touch)
    page = seen.page
    for token, after in (("a", ""), ("c", ""), ("y", "c"), ("<eos>", "c"), ("z", "c y"), ("<eos>", "c y")):
        press(pick(page, token, after), touch)
    sums, lengths = torch.tensor([-1.2, -1.8, -4.7]).double(), torch.tensor([2, 3, 3]).double()
    names = ["c <eos>", "c y <eos>", "c y z"]
    winners = set()
    for penalty in (0, 0.05, 0.6, 0.95, 1.25, 2):
        page.locator("[data-k=penalty]").fill(str(penalty))
        scores = sums / lengths**penalty
        best = int(scores.argmax())
        winners.add(best)
        said(page, f"“{names[best]}” wins with {as_shown(scores[best])}.")
        assert [page.locator(f"[data-k=end{i}]").text_content() for i in range(3)] == [as_shown(x) for x in scores]
        high = ["high" in page.locator(f"[data-k=end{i}]").get_attribute("class") for i in range(3)]
        assert high == [i == best for i in range(3)]
    assert winners == {0, 1}
    page.locator("[data-k=penalty]").focus()
    page.keyboard.press("ArrowLeft")
    said(page, f"wins with {as_shown((sums / lengths**1.95).max())}.")
    clean(seen)


@layouts
def test_it_starts_again(show, width, scheme, touch):
    seen = show(tree(), width=width, scheme=scheme, touch=touch)
    page = seen.page
    press(pick(page, "a"), touch)
    press(pick(page, "b"), touch)
    said(page, "You picked 1 of 2.")
    press(page.locator("[data-k=reset]"), touch)
    said(page, "2 more to pick.")
    assert [step.is_visible() for step in page.locator(".step").all()] == [True, False, False, False]
    assert page.locator("[aria-pressed=true]").count() == 0
    assert page.locator(".sum:visible").count() == 0
    clean(seen)


def test_without_a_script_the_whole_tree_is_there(browser, tmp_path):
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(tree().save(tmp_path / "view.html").as_uri())
    assert all(step.is_visible() for step in page.locator(".step").all())
    assert page.locator("text.won:visible", has_text="✓").count() == 6
    context.close()


def large_tree():
    torch.manual_seed(4)
    tokens, parents, log_probs, open_, before = [], [], [], [-1], None
    for s in range(4):
        scores = [torch.randn(9).log_softmax(-1).topk(4).values for _ in open_]
        parents.append([parent for parent in open_ for _ in range(4)])
        tokens.append([f"▁Straßen{i}" for i in range(len(parents[-1]))])
        log_probs.append(torch.cat(scores))
        before = log_probs[-1] + (before[parents[-1]] if s else 0)
        open_ = before.topk(3).indices.tolist()
    return beam_tree(tokens, parents, log_probs, 3)


@everywhere
def test_a_large_tree_is_legible_and_its_targets_large_enough(show, width, scheme):
    seen = show(large_tree(), width=width, scheme=scheme)
    page = seen.page
    for s in range(4):
        nodes = page.locator(".step").nth(s).locator(".pick")
        for i in range(3):
            nodes.nth(i).click()
    said(page, "Step 4 keeps")
    boxes = page.evaluate("[...document.querySelectorAll('.pick rect')].map(n => n.getBoundingClientRect().height)")
    assert len(boxes) == 4 + 3 * 12
    assert min(boxes) >= 24
    # no text runs into another, and between the numbers of a row there is a gap
    assert (
        page.evaluate(
            """[...document.querySelectorAll('.step svg')].flatMap(svg => {
            const boxes = [...svg.querySelectorAll('text')].filter(n => n.checkVisibility() && n.textContent)
                .map(n => [n.getBoundingClientRect(), n.textContent]);
            return boxes.flatMap(([a, x], i) => boxes.slice(i + 1).filter(([b]) =>
                a.left < b.right + 2 && b.left < a.right + 2 && a.top < b.bottom && b.top < a.bottom
            ).map(([, y]) => x + " | " + y));
        })"""
        )
        == []
    )
    crossed = page.evaluate(
        """[...document.querySelectorAll('.pick')].filter(node => {
            const of = n => n.getBoundingClientRect(), [, token, log] = node.querySelectorAll('text'),
                  sum = node.nextElementSibling, frame = of(node.querySelector('rect'));
            return of(token).right > of(log).left || of(log).right > of(sum).left || of(sum).right > frame.right;
        }).length"""
    )
    assert crossed == 0
    # nor a hypothesis into the lines to its candidates
    assert page.evaluate(
        """[...document.querySelectorAll('.step svg')].slice(0, 4).every(svg => {
            const of = n => n.getBoundingClientRect(), edge = of(svg.querySelector('path')).left;
            return [...svg.querySelectorAll('text[x="0"]')].slice(1).every(n => of(n).right < edge + 4);
        })"""
    )
    clean(seen)


# Work with and without a cache ----------------------------------------------------------------------------------------


@layouts
def test_each_step_shows_its_work(show, width, scheme, touch):
    view = cache_work(7, 9, 64, 3)
    seen = show(view, width=width, scheme=scheme, touch=touch)
    page = seen.page
    slider = page.locator("[data-k=step]")
    box = slider.bounding_box()
    press_at = page.touchscreen.tap if touch else page.mouse.click
    press_at(box["x"] + 2, box["y"] + box["height"] / 2)
    total = [0, 0]
    for t in range(1, 10):
        row = 6 * 64 * 64 + 2 * 7 * 64 + 2 * 64 * 256
        now = 3 * (t * row + 2 * t * t * 64 + 2 * 7 * 64 * 64)
        one = 3 * (row + 2 * t * 64 + (2 * 7 * 64 * 64 if t == 1 else 0))
        total = [total[0] + now, total[1] + one]
        said(
            page,
            f"So far {total[0] / total[1]:.2f} times as much work without a cache; "
            f"step {t}: {now:,} multiply-adds, with one {one:,}.",
        )
        texts = [page.locator(f"[data-k=text{i}]").text_content() for i in range(10)]
        assert texts[:5] == [f"{t} × {t} = {t * t}", f"{t}", f"{now:,}", f"{total[0]:,}", f"{total[0] / total[1]:.2f}"]
        kept = 2 * 3 * (t + 7) * 64
        assert texts[5:9] == [f"1 × {t} = {t}", "1", f"{one:,}", f"{total[1]:,}"]
        assert texts[9] == f"{kept:,}; {kept * 4 / 2**20:.3f}"
        for i, path in enumerate(view.data["states"][t - 1][0]):
            assert page.locator(f"[data-k=path{i}]").get_attribute("d") == path
        assert page.locator("[data-k=step-value]").text_content() == str(t)
        slider.focus()
        page.keyboard.press("ArrowRight")
    clean(seen)


@everywhere
def test_the_grids_of_a_long_text_fit(show, width, scheme):
    seen = show(cache_work(60, 40, 512, 6), width=width, scheme=scheme)
    page = seen.page
    page.locator("[data-k=step]").fill("40")
    said(page, "step 40: ")
    outside = page.evaluate(
        """[...document.querySelectorAll('svg')].filter(svg => [...svg.querySelectorAll('text, path')].some(n => {
            const a = n.getBoundingClientRect(), b = svg.getBoundingClientRect();
            return a.right > b.right + 1 || a.left < b.left - 1 || a.bottom > b.bottom + 1;
        })).length"""
    )
    assert outside == 0
    clean(seen)
