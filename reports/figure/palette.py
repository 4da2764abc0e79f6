"""The colours of all pictures.

A consumer has the same colour in every picture of a trace: members in natural order take the
colours in turn. People who lack one kind of cone can distinguish the seven hues and the red of
breaches; a test measures it. If there are more members than hues, darker and lighter shades
follow, then the same colours with one stripe along the bar, and with two; labels help.
"""

from __future__ import annotations

from collections.abc import Iterable

from watchkeeper.reports.facts.names import natural

HUES = ("#2f66b3", "#f8c574", "#2b8a66", "#7fd0f2", "#70407a", "#a8b52c", "#b397ea")

BREACH = "#d8121b"
ZOMBIE = "#1f2328"
INK = "#1f2328"
SOFT_INK = "#6a737d"
FAINT = "#d0d7de"
GRID = "#eceff2"
PAPER = "#ffffff"
GAP = "#8c959f"
FAULT = "#33393f"
CLOSER = "#0969da"

OUTCOMES = {"ok": "#2f66b3", "error": "#b35900", "lost": "#d8121b"}
WATCH = "#70407a"

_SHADES = ((0.0, 0), (0.36, 0), (0.45, 255))
"""How far towards which grey each round of hues is moved."""
COLOURS = len(HUES) * len(_SHADES)
STRIPES_AT = (0.68, 0.2)
"""The position of the first and second stripe, as shares of a bar's height."""
STRIPE = 0.12
"""How much of the height a stripe takes."""
LOOKS = COLOURS * (len(STRIPES_AT) + 1)
"""The number of consumers that look different from each other."""
PALE = 0.32
"""The share of colour that is left for a paused process."""


def consumer_colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each consumer."""
    ordered = sorted(set(names), key=natural)
    return {name: _colour(at) for at, name in enumerate(ordered)}


def consumer_stripes(names: Iterable[str]) -> dict[str, int]:
    """How many stripes each consumer has, beside its colour."""
    ordered = sorted(set(names), key=natural)
    return {name: at // COLOURS % (len(STRIPES_AT) + 1) for at, name in enumerate(ordered)}


def _colour(at: int) -> str:
    share, towards = _SHADES[at // len(HUES) % len(_SHADES)]
    return blend(HUES[at % len(HUES)], towards, share)


def channels(colour: str) -> tuple[int, int, int]:
    """The red, green and blue of a colour, 0 to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def blend(colour: str, grey: int, share: float) -> str:
    """A colour moved by this share towards a grey (0 black, 255 white)."""
    mixed = (round(channel + (grey - channel) * share) for channel in channels(colour))
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def text_on(colour: str) -> str:
    """The colour of readable text on this colour."""
    red, green, blue = channels(colour)
    return INK if red * 299 + green * 587 + blue * 114 > 140_000 else PAPER
