"""The picture of ownership as a film: what is after a moment is covered, and uncovers with time.

Each panel has a clock of its own: the closer look at a part of the run plays beside the whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from matplotlib.font_manager import FontProperties, findfont
from PIL import Image, ImageDraw, ImageFont

from watchkeeper.model.trace.trace import Trace
from watchkeeper.reports.figure.canvas import styled
from watchkeeper.reports.figure.files import write
from watchkeeper.reports.figure.page_size import DPI, FAMILY
from watchkeeper.reports.figure.panels import Panel
from watchkeeper.reports.ownership.layout import Layout
from watchkeeper.reports.ownership.png import draw, drawn_board, layout_of

NAME = "ownership.gif"

FRAMES = 40
FRAME_MS, LAST_MS = 150, 3_000
WIDTH_PIXELS = 1_000
VEIL = (255, 255, 255, 224)
INK, PAPER = (31, 35, 40, 255), (255, 255, 255, 255)
TEXT_PIXELS = 11
LINE_PIXELS = 2
GAP_PIXELS = 4


def write_ownership_gif(trace: Trace, folder: Path) -> str:
    """Draw the film; return the name of the file."""
    shown = drawn_board(trace)
    with styled():
        whole = Image.open(BytesIO(draw(shown).png())).convert("RGBA")
        first, *others = frames(whole, layout_of(shown))
    out = BytesIO()
    times = [FRAME_MS] * len(others) + [LAST_MS]
    first.save(out, "GIF", save_all=True, append_images=others, duration=times, loop=0)
    return write(folder / NAME, out.getvalue())


def frames(whole: Image.Image, layout: Layout) -> Iterator[Image.Image]:
    """Yield the picture at each moment, the last one whole."""
    an_inch = DPI * WIDTH_PIXELS / whole.width
    size = (WIDTH_PIXELS, round(whole.height * WIDTH_PIXELS / whole.width))
    small = whole.resize(size, Image.Resampling.LANCZOS)  # once: it takes longer than all veils
    font = ImageFont.truetype(findfont(FontProperties(family=FAMILY)), TEXT_PIXELS)
    for number in range(1, FRAMES + 1):
        veil = Image.new("RGBA", size, (0, 0, 0, 0))
        if number < FRAMES:
            for panel in layout.panels:
                _cover(ImageDraw.Draw(veil), layout, panel, number / FRAMES, font, an_inch)
        yield Image.alpha_composite(small, veil).convert("RGB")


def _cover(
    onto: ImageDraw.ImageDraw,
    layout: Layout,
    panel: Panel,
    share: float,
    font: ImageFont.FreeTypeFont,
    an_inch: float,
) -> None:
    """Cover what is after a moment of a panel, and write the moment beside its line."""
    at_us = round(panel.from_us + (panel.to_us - panel.from_us) * share)
    x, right = panel.x(at_us) * an_inch, panel.right * an_inch
    top, bottom = layout.top * an_inch, layout.bottom * an_inch
    onto.rectangle((x, top, right, bottom), fill=VEIL)
    onto.line((x, top, x, bottom + TEXT_PIXELS), fill=INK, width=LINE_PIXELS)
    text = f"{at_us / 1_000_000:.3g} s"
    wide = onto.textlength(text, font=font)
    left = x + GAP_PIXELS
    if left + wide >= right:
        left = x - GAP_PIXELS - wide
    onto.rectangle(
        (left - 2, bottom + 1, left + wide + 2, bottom + 1.6 * TEXT_PIXELS), fill=PAPER
    )
    onto.text((left, bottom + 2), text, fill=INK, font=font)
