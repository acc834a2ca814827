"""The views of the chapter on decoding, driven as readers drive them: mouse, keyboard, touch."""

import pytest
import torch
from driving import choose, clean, said
from hands import layouts
from shown import as_shown

from course_kit.viz import beam_tree, cache_work, next_token_bars

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]


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


@pytest.mark.parametrize("vocabulary", [9, 40, 10_000])
@pytest.mark.parametrize(("width", "scheme"), [(1000, "light"), (390, "dark")])
def test_probabilities_are_torchs_in_the_same_order_of_filters(show, vocabulary, width, scheme):
    logits = torch.randn(vocabulary) * 2
    view = next_token_bars(logits, shown=12)
    seen = show(view, width=width, scheme=scheme)
    page = seen.page
    for temperature, k, p in [
        (1, "all", 1), (0.2, "all", 1), (2, "all", 0.9), (0.7, 5, 1), (1.5, 8, 0.6), (0.5, 1, 1), (1, "all", 0.05),
        (2, 8, 0.95), (1, 3, 0.35),
    ]:  # fmt: skip
        for key, value in (("t", temperature), ("k", view.data["sizes"].index(k)), ("p", p)):
            page.locator(f"[data-k={key}]").fill(str(value))
        top_k = (
            page.locator("[data-k=k-value]").text_content(),
            page.locator("[data-k=k]").get_attribute("aria-valuetext"),
        )
        assert top_k == (str(k), str(k))
        wanted, before = filtered(logits, temperature, k, p), filtered(logits, temperature, "all", 1)
        bars, pale = ([*x[:12].tolist(), *([x[12:].sum().item()] if vocabulary > 12 else [])] for x in (wanted, before))
        full = next(x for x in (0.25, 0.5, 1) if x == 1 or x >= max(bars + pale))
        remain, entropy = int((wanted > 0).sum()), torch.special.entr(wanted).sum()
        said(page, f"Of {vocabulary} tokens, {remain} remain; the entropy is {entropy:.3f} nats")
        assert said(page, " has ").endswith(f" has {wanted[0]:.3f}.")
        assert page.locator("[data-k=full]").text_content() == f"{full:g}"
        rows = page.locator(".token").evaluate_all(
            "rows => rows.map(r => [...[1, 2].map(n => +r.children[n].getAttribute('width')), r.lastChild.textContent, "
            "getComputedStyle(r.firstChild).textDecorationLine == 'line-through'])"
        )
        wide, strong, texts, out = zip(*rows, strict=True)
        assert list(wide) == pytest.approx([140 * x / full for x in pale], abs=1e-3)
        assert list(strong) == pytest.approx([140 * x / full for x in bars], abs=1e-3)
        assert list(texts) == [f"{x:.3f}" for x in bars]
        assert list(out) == [x == 0 for x in bars]
    clean(seen)


def test_all_that_equal_the_kth_stay(show):
    logits = torch.tensor([1.0, 3.0, 1.0, 1.0, 0.0])
    page = show(next_token_bars(logits, list("abcde"))).page
    page.locator("[data-k=k]").fill("1")
    said(page, "Of 5 tokens, 4 remain")
    page.locator("[data-k=k]").fill("0")
    said(page, "Of 5 tokens, 1 remain; the entropy is 0.000 nats, and “b” has 1.000.")


# Beam search ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def tree():
    return beam_tree(
        [["a", "b", "c"], ["x", "<eos>", "<eos>", "y"], ["<eos>", "z"]],
        [[-1, -1, -1], [0, 2, 0, 2], [3, 3]],
        [[-0.4, -2.0, -1.0], [-1.5, -0.2, -2.0, -0.7], [-0.1, -3.0]],
        2,
    )


def pick(page, token, after=""):
    return page.locator(f"[aria-label^='“{token}” '][aria-label$='probability{f' after “{after}”' if after else ''}']")


def seen_steps(page):
    return [step.is_visible() for step in page.locator(".step").all()]


@layouts
def test_a_beam_is_pruned_by_hand_and_compared(show, tree, width, scheme, touch):
    seen = show(tree, width=width, scheme=scheme, touch=touch)
    page = seen.page
    steps = page.locator(".step")
    assert seen_steps(page) == [True, False, False, False]
    assert page.locator(".sum:visible").count() == 0  # what the search keeps is not seen yet
    for words in ("1 more to pick.", "2 more to pick.", "1 more to pick."):  # a pick can be taken back until the last
        choose(pick(page, "b"), touch)
        said(page, words)
    assert pick(page, "b").get_attribute("aria-pressed") == "true"
    choose(pick(page, "a"), touch)
    said(page, "You picked 1 of 2. Step 1 keeps “a” and “c”.")
    assert seen_steps(page) == [True, True, False, False]
    sums = steps.nth(0).locator("text.sum:visible").all_text_contents()
    assert sums == ["sum", "−0.400", "✓", "−1.000", "✓", "−2.000"]
    assert steps.nth(1).locator(".sum:visible").count() == 0
    choose(pick(page, "b"), touch)  # what was compared stays
    assert pick(page, "b").get_attribute("aria-pressed") == "true"
    assert not steps.nth(2).is_visible()
    choose(pick(page, "<eos>", "c"), touch)
    choose(pick(page, "y", "c"), touch)
    said(page, "You picked 2 of 2. Step 2 keeps “c <eos>” and “c y”.")
    choose(pick(page, "z", "c y"), touch)
    choose(pick(page, "<eos>", "c y"), touch)
    said(page, "You picked 2 of 2.")
    assert seen_steps(page) == [True] * 4
    sums, lengths = torch.tensor([-1.2, -1.8, -4.7]).double(), torch.tensor([2, 3, 3]).double()
    names, ends = ["c <eos>", "c y <eos>", "c y z"], [page.locator(f"[data-k=end{i}]") for i in range(3)]
    for penalty, winner in ((0, 0), (0.05, 0), (0.6, 0), (0.95, 0), (1.25, 1), (2, 1)):
        page.locator("[data-k=penalty]").fill(str(penalty))
        scores = [as_shown(x) for x in sums / lengths**penalty]
        said(page, f"“{names[winner]}” wins with {scores[winner]}.")
        assert [end.text_content() for end in ends] == scores
        assert ["high" in end.get_attribute("class") for end in ends] == [i == winner for i in range(3)]
    page.locator("[data-k=penalty]").focus()
    page.keyboard.press("ArrowLeft")
    said(page, f"wins with {as_shown((sums / lengths**1.95).max())}.")
    choose(page.locator("[data-k=reset]"), touch)
    said(page, "2 more to pick.")
    assert seen_steps(page) == [True, False, False, False]
    assert page.locator("[aria-pressed=true]").count() == page.locator(".sum:visible").count() == 0
    clean(seen)


def test_it_is_pruned_by_keyboard(show, tree):
    seen = show(tree)
    page = seen.page
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    said(page, "1 more to pick.")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("getComputedStyle(document.activeElement.querySelector('rect')).strokeWidth") == "4px"
    page.keyboard.press(" ")
    said(page, "You picked 2 of 2. Step 1 keeps “a” and “c”.")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.ariaLabel").startswith("“x” −1.500, log-probability after “a”")
    clean(seen)


def test_without_a_script_the_whole_tree_is_there(browser, tree, tmp_path):
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(tree.save(tmp_path / "view.html").as_uri())
    assert seen_steps(page) == [True] * 4
    assert page.locator("text.won:visible", has_text="✓").count() == 6
    context.close()


def large_tree():
    tokens, parents, log_probs, open_, before = [], [], [], [-1], None
    for s in range(4):
        scores = [torch.randn(9).log_softmax(-1).topk(4).values for _ in open_]
        parents.append([parent for parent in open_ for _ in range(4)])
        tokens.append([f"▁Straßen{i}" for i in range(len(parents[-1]))])
        log_probs.append(torch.cat(scores))
        before = log_probs[-1] + (before[parents[-1]] if s else 0)
        open_ = before.topk(3).indices.tolist()
    return beam_tree(tokens, parents, log_probs, 3)


@layouts
def test_a_large_tree_is_legible_and_its_targets_large_enough(show, width, scheme, touch):
    seen = show(large_tree(), width=width, scheme=scheme, touch=touch)
    page = seen.page
    for s in range(4):
        for i in range(3):
            choose(page.locator(".step").nth(s).locator(".pick").nth(i), touch)
    said(page, "Step 4 keeps")
    heights = page.locator(".pick rect").evaluate_all("list => list.map(n => n.getBoundingClientRect().height)")
    assert len(heights) == 4 + 3 * 12
    assert min(heights) >= 24
    # no text runs into another, and between the numbers of a row there is a gap
    assert (
        page.locator(".step svg").evaluate_all(
            """list => list.flatMap(svg => {
            const boxes = [...svg.querySelectorAll('text')].filter(n => n.checkVisibility() && n.textContent)
                .map(n => [n.getBoundingClientRect(), n.textContent]);
            return boxes.flatMap(([a, x], i) => boxes.slice(i + 1).filter(([b]) =>
                a.left < b.right + 2 && b.left < a.right + 2 && a.top < b.bottom && b.top < a.bottom
            ).map(([, y]) => x + " | " + y));
        })"""
        )
        == []
    )
    # nor a number out of its row, or a hypothesis into the lines to its candidates
    assert page.locator(".step:has(.pick)").evaluate_all(
        """list => list.every(step => {
            const right = n => n.getBoundingClientRect().right, lines = step.querySelector('svg path');
            return [...step.querySelectorAll('.pick')].every(n => right(n.nextElementSibling) < right(n.firstChild))
                && [...step.querySelectorAll('text[x="0"]')].slice(1)
                    .every(n => right(n) < lines.getBoundingClientRect().left + 4);
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
    (page.touchscreen.tap if touch else page.mouse.click)(box["x"] + 2, box["y"] + box["height"] / 2)  # its left end
    for t, (paths, words, *texts) in enumerate(view.data["states"], start=1):
        assert said(page, f"step {t}: ") == words
        assert [page.locator(f"[data-k=text{i}]").text_content() for i in range(10)] == texts
        assert [page.locator(f"[data-k=path{i}]").get_attribute("d") for i in range(5)] == paths
        assert page.locator("[data-k=step-value]").text_content() == str(t)
        slider.focus()
        page.keyboard.press("ArrowRight")
    clean(seen)


def test_the_grids_of_a_long_text_fit(show):
    for width in (1000, 390):
        seen = show(cache_work(60, 40, 512, 6), width=width)
        seen.page.locator("[data-k=step]").fill("40")
        said(seen.page, "step 40: ")
        assert seen.page.locator("svg").evaluate_all(
            """list => list.every(svg => [...svg.querySelectorAll('text, path')].every(n => {
                const a = n.getBoundingClientRect(), b = svg.getBoundingClientRect();
                return a.right <= b.right + 1 && a.left >= b.left - 1 && a.bottom <= b.bottom + 1;
            }))"""
        )
        clean(seen)
