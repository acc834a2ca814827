"""What axe-core finds: nothing may keep somebody from reading or using a page."""

from axe_playwright_python.sync_playwright import Axe

# What axe reports, and why it stands: rule -> reason. None so far.
KNOWN: dict[str, str] = {}

# Of what is in order only the count comes back: half the time. The rule is one that axe does not ask for by itself.
OPTIONS = {"resultTypes": ["violations"], "rules": {"label-content-name-mismatch": {"enabled": True}}}

# The contrast of thousands of coloured words of code takes most of the time, although they have a dozen colours. Of the
# blocks of code, those are marked that show a combination of colours for the first time; the others are left out.
MARK_REPEATED_CODE = """() => {
  const seen = new Set();
  for (const block of document.querySelectorAll('pre')) {
    const lit = n => { while (n && getComputedStyle(n).backgroundColor === 'rgba(0, 0, 0, 0)') n = n.parentElement;
                       return n ? getComputedStyle(n).backgroundColor : ''; };
    const ground = lit(block), kind = [block.tabIndex, block.scrollWidth > block.clientWidth].join();
    const keys = [block, ...block.querySelectorAll('*')].map(n => {
      const s = getComputedStyle(n);
      const back = s.backgroundColor === 'rgba(0, 0, 0, 0)' ? ground : s.backgroundColor;
      return [n.tagName, s.color, back, s.fontWeight, s.fontSize, s.opacity, kind].join();
    });
    if (keys.every(key => seen.has(key))) block.dataset.repeats = '';
    keys.forEach(key => seen.add(key));
  }
}"""


def faults(page, *, without=()):
    """The faults of a page at every level, minor ones too, in words; parts of it can be left out, as CSS selectors."""
    page.evaluate(MARK_REPEATED_CODE)
    context = {"exclude": [["pre[data-repeats]"], *([part] for part in without)]}
    violations = Axe().run(page, context=context, options=OPTIONS).response["violations"]
    return [
        f"{v['id']} ({v['impact']}): {v['help']}: {[node['target'] for node in v['nodes']][:4]}"
        for v in violations
        if v["id"] not in KNOWN
    ]
