"""Every page and every view, gone over by axe-core: nothing that keeps somebody from reading or using it."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from tools.pages import all_pages

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PAGES = [f"{page.name}.html" for page in all_pages()]
SERIOUS = {"serious", "critical"}
# What axe reports, and why it stands: rule -> reason. None so far.
KNOWN: dict[str, str] = {}


def faults(page):
    # Of what is in order only the count comes back: half the time.
    violations = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{v['id']} ({v['impact']}): {v['help']}: {[node['target'] for node in v['nodes']][:4]}"
        for v in violations
        if v["impact"] in SERIOUS and v["id"] not in KNOWN
    ]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
@pytest.mark.parametrize("address", PAGES)
def test_no_serious_fault_on_any_page(visit, address, width, scheme):
    assert faults(visit(address, width=width, scheme=scheme).page) == []


def test_a_fault_would_be_found(visit):
    page = visit(PAGES[0]).page
    page.evaluate(
        "document.querySelector('article').insertAdjacentHTML('beforeend', '<img src=\"data:,\"><button></button>')"
    )
    found = faults(page)
    assert any(fault.startswith("button-name") for fault in found)
    assert any(fault.startswith("image-alt") for fault in found)
