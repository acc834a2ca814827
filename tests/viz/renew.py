"""Draw the baselines of the static figures anew: `python -m tests.viz.renew [NAME …]`. Look at what has changed.

A picture that still shows the same is left as it is, byte by byte.
"""

import sys

from tests.viz.figures import BASELINE, FIGURES, SHARE, difference, picture


def main(names: list[str]) -> None:
    """Renew the named baselines, or all."""
    if unknown := set(names) - set(FIGURES):
        sys.exit(f"no figure is called {', '.join(sorted(unknown))}; there are {', '.join(FIGURES)}")
    BASELINE.mkdir(exist_ok=True)
    for name in names or FIGURES:
        path, fresh = BASELINE / f"{name}.png", picture(FIGURES[name])
        if path.exists() and difference(path.read_bytes(), fresh) <= SHARE:
            print(f"{name}: as it was")
            continue
        path.write_bytes(fresh)
        print(f"{name}: written, {len(fresh) / 1000:.1f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
