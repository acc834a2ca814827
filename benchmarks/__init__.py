"""Speed against peers. Ratios of times measured in turn in one run; no test depends on them."""
