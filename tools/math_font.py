"""Cut STIX Two Math down to what the book's formulas use, and call it Book Math: 79 kB in place of 403.

    python -m tools.math_font stix-two-math-latin-400-normal.woff

Larger root signs are made as narrow as the smallest: Chromium reserves the width of the widest sign beside every root.

The file is in the npm package `@fontsource/stix-two-math`. Needs the package brotli. The table of mathematical
constants, without which a browser cannot set a fraction, and the larger variants of brackets and roots are kept.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

TARGET = Path(__file__).parent.parent / "book/_static/fonts/math.woff2"
KEPT = (
    (0x20, 0x7E), (0xA0, 0xFF), (0x131, 0x131), (0x237, 0x237), (0x2C6, 0x2DD), (0x300, 0x338),  # Latin, accents
    (0x391, 0x3F6),  # Greek
    (0x2010, 0x2027), (0x2032, 0x2037), (0x2040, 0x2044), (0x2061, 0x2064), (0x20D0, 0x20DF),  # punctuation
    (0x2102, 0x2102), (0x210A, 0x2113), (0x2115, 0x2115), (0x2119, 0x211D), (0x2124, 0x2124), (0x2128, 0x2134),
    (0x2190, 0x21D5), (0x2200, 0x22F1), (0x27F5, 0x27FA), (0x2A00, 0x2A10), (0x2A7D, 0x2A7E), (0x2AAF, 0x2AB0),
    (0x2308, 0x230B), (0x239B, 0x23AF), (0x23B0, 0x23DF), (0x27E6, 0x27EF),  # brackets and their parts
    (0x1D400, 0x1D467), (0x1D49C, 0x1D4B5), (0x1D538, 0x1D550), (0x1D6A4, 0x1D6A5), (0x1D6E2, 0x1D71B),  # letters
)  # fmt: skip


def narrow_roots(font: TTFont) -> None:
    """Give the larger variants of the root sign, and the parts that it is assembled from, the width of the smallest."""
    variants = font["MATH"].table.MathVariants
    smallest = font.getBestCmap()[ord("√")]
    root = variants.VertGlyphConstruction[variants.VertGlyphCoverage.glyphs.index(smallest)]
    names = {record.VariantGlyph for record in root.MathGlyphVariantRecord}
    names |= {part.glyph for part in root.GlyphAssembly.PartRecords}
    width = font["hmtx"][smallest][0]
    for name in names - {smallest}:
        glyph, (advance, bearing) = font["glyf"][name], font["hmtx"][name]
        scale = width / advance
        glyph.coordinates.scale((scale, 1))
        glyph.coordinates.toInt()
        glyph.recalcBounds(font["glyf"])
        font["hmtx"][name] = (width, round(bearing * scale))


def main() -> None:
    """Command line; see the module's docstring."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    font = TTFont(sys.argv[1])
    options = Options(layout_features=["ssty", "dtls", "flac", "kern", "ccmp", "mark", "mkmk"], name_IDs=["*"])
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=[code for first, last in KEPT for code in range(first, last + 1)])
    subsetter.subset(font)
    narrow_roots(font)
    for record in font["name"].names:  # the licence reserves the name of the whole font
        if record.nameID in (1, 4, 16):
            record.string = "Book Math"
        elif record.nameID == 6:
            record.string = "BookMath-Regular"
    font.flavor = "woff2"
    font.save(TARGET)
    print(f"{TARGET}: {TARGET.stat().st_size / 1000:.0f} kB, {len(font.getGlyphOrder())} glyphs")


if __name__ == "__main__":
    main()
