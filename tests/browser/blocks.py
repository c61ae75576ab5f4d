"""A font whose letters are all the same block, so that a page is laid out and drawn alike on every machine."""

from __future__ import annotations

from pathlib import Path

from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib.tables._g_l_y_f import Glyph

_EM = 1000
_WIDTH = 550
_SPACES = (0x20, 0xA0, 0x2009, 0x202F)

# The only fonts there are, not moved to whole pixels and not coloured at their edges.
_SETTINGS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>{folder}</dir>
  <cachedir>{folder}/cache</cachedir>
  <match target="pattern">
    <edit name="antialias" mode="assign"><bool>true</bool></edit>
    <edit name="hinting" mode="assign"><bool>false</bool></edit>
    <edit name="hintstyle" mode="assign"><const>hintnone</const></edit>
    <edit name="rgba" mode="assign"><const>none</const></edit>
  </match>
</fontconfig>
"""


def only_blocks(folder: Path) -> dict[str, str]:
    """The environment of a browser that draws all text in blocks, as wide as there are letters.

    Args:
        folder: an empty one, for the fonts and their settings.
    """
    # One for bold text, too: it would be made bold otherwise, as each release of a browser sees fit.
    for style, weight in (("Regular", 400), ("Bold", 700)):
        _font(style, weight).save(folder / f"{style}.ttf")
    settings = folder / "fonts.conf"
    settings.write_text(_SETTINGS.format(folder=folder))
    return {"FONTCONFIG_FILE": str(settings)}


def _font(style: str, weight: int) -> FontBuilder:
    font = FontBuilder(_EM, isTTF=True)
    font.setupGlyphOrder([".notdef", "block", "space"])
    font.setupCharacterMap({**dict.fromkeys(range(0x21, 0x2BFF), "block"), **dict.fromkeys(_SPACES, "space")})
    font.setupGlyf({".notdef": _block(), "block": _block(), "space": TTGlyphPen(None).glyph()})
    font.setupHorizontalMetrics({".notdef": (_WIDTH, 50), "block": (_WIDTH, 50), "space": (_WIDTH, 0)})
    font.setupHorizontalHeader(ascent=800, descent=-200)
    font.setupOS2(sTypoAscender=800, sTypoDescender=-200, usWinAscent=800, usWinDescent=200, usWeightClass=weight)
    font.setupNameTable({"familyName": "Blocks", "styleName": style})
    font.setupPost()
    return font


def _block() -> Glyph:
    pen = TTGlyphPen(None)
    pen.moveTo((50, 0))
    for corner in ((50, 600), (_WIDTH - 50, 600), (_WIDTH - 50, 0)):
        pen.lineTo(corner)
    pen.closePath()
    return pen.glyph()
