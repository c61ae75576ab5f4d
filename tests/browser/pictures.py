"""What a picture shows, held against what it showed before."""

from __future__ import annotations

from PIL import Image, ImageChops

# Pixels of a cell's edge, whose mean colours are compared: edges of letters and lines are drawn a little differently
# by other releases of Chromium.
CELL = 4
# Of 255; cells further apart in any channel differ.
TOLERANCE = 20
# Cells of a region's edge; a region differs if more than a share of its cells do. Regions overlap, so that what is
# small lies in one of them whole: the smallest button is a fifth of it. The arrow of a list, which browsers draw as
# they like, is less than a tenth.
REGION = 8
SHARE = 0.15


def differences(before: Image.Image, after: Image.Image) -> list[str]:
    """What is not alike, in words; empty where nothing is.

    Args:
        before: how it looked.
        after: how it looks now.
    """
    if before.size != after.size:
        return [f"it was {before.width} x {before.height} pixels and is {after.width} x {after.height}"]
    cells = (max(1, before.width // CELL), max(1, before.height // CELL))
    small = [image.convert("RGB").resize(cells, Image.Resampling.BOX) for image in (before, after)]
    apart = ImageChops.difference(*small)
    channels = [channel.point(lambda value: 255 if value > TOLERANCE else 0) for channel in apart.split()]
    differ = ImageChops.lighter(ImageChops.lighter(channels[0], channels[1]), channels[2])
    found = []
    for top in range(0, cells[1], REGION // 2):
        for left in range(0, cells[0], REGION // 2):
            region = differ.crop((left, top, min(left + REGION, cells[0]), min(top + REGION, cells[1])))
            share = region.histogram()[255] / REGION**2
            if share > SHARE:
                found.append(f"{share:.0%} of the pixels around ({left * CELL}, {top * CELL})")
    return found
