"""The look of everything in the picture of ownership, in place and in the legend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from watchkeeper.model.properties.verdicts import counted
from watchkeeper.reports.facts import sessions
from watchkeeper.reports.facts.spans import Span
from watchkeeper.reports.figure import palette
from watchkeeper.reports.figure.canvas import Box, Sheet, text_width
from watchkeeper.reports.figure.page_size import LEGEND_SIZE
from watchkeeper.reports.figure.panels import Panel
from watchkeeper.reports.ownership.layout import Word
from watchkeeper.reports.ownership.ownership import Board
from watchkeeper.reports.ownership.wording import Wording

SPLIT = "split ownership"
ZOMBIE_OWNER = "zombie owner"
GAP = "gap: served, fetched by no member"
STRIPED = "striped: the colours are used once more"
WIDER = "what is red or black and very short is drawn wider than it lasted"


def text_of(look: str, wording: Wording) -> str:
    """The legend's text for a look; states have names that explain themselves, but for two."""
    texts = {
        SPLIT: wording.split,
        ZOMBIE_OWNER: wording.zombie,
        sessions.CONNECTED: f"connected, in the {wording.member}'s colour",
        sessions.PAUSED: wording.paused,
    }
    return texts.get(look, look)


WIDE = 0.28
"""Of a sample in the legend."""
BETWEEN = 0.26
THINNEST = 0.03
"""The least width of a breach or a dead session, so that none is overlooked."""
VISIBLE = 0.006
"""The least width at which a gap is visible."""
SHORTEST = 0.02
"""The least width at which a state needs an explanation."""

STATES = (
    sessions.CONNECTED,
    sessions.SUSPENDED,
    sessions.PAUSED,
    sessions.PAUSED_DEAD,
    sessions.ZOMBIE,
    sessions.NO_SESSION,
    sessions.OUTLIVED,
    sessions.LEFT_BEHIND,
    sessions.NOT_RUNNING,
)


# --- the words of the legend -----------------------------------------------------------


def words(shown: Board, panels: Sequence[Panel]) -> list[Word]:
    """The words of the legend: exactly what is visible in the picture."""
    found = [breach for row in shown.rows for breach in row.breaches]
    gaps = [gap for row in shown.rows for gap in row.gaps]
    unseen = sum(1 for gap in gaps if widest(gap, panels) < VISIBLE)
    states = states_seen(shown, panels)
    seen = {
        SPLIT: any(breach.is_split for breach in found),
        ZOMBIE_OWNER: any(not breach.is_split for breach in found),
        GAP: len(gaps) > unseen,
        **{state: state in states for state in STATES},
        STRIPED: any(shown.stripes.values()),
    }
    wording = shown.wording
    found_words = [
        Word(look, text_of(look, wording)) for look, is_seen in seen.items() if is_seen
    ]
    widened = [breach.span for breach in found] + zombies(shown)
    if any(span.duration_us * panels[0].inches_a_us < THINNEST for span in widened):
        found_words.append(Word("", WIDER))
    if len(shown.colours) > palette.LOOKS:
        found_words.append(
            Word("", f"looks repeat after {palette.LOOKS} {wording.members}: go by the names")
        )
    if unseen:
        found_words.append(Word("", f"{counted(unseen, 'gap')} too short to be seen here"))
    return found_words


def widest(span: Span, panels: Iterable[Panel]) -> float:
    """How wide a span is in the panel that shows it best."""
    extents = (panel.extent(span) for panel in panels)
    return max((extent[1] - extent[0] for extent in extents if extent is not None), default=0)


def zombies(shown: Board) -> list[Span]:
    """The spans in which processes ran with a dead session."""
    return [
        span for strip in shown.strips.values() for span in strip if span.what == sessions.ZOMBIE
    ]


def states_seen(shown: Board, panels: Sequence[Panel]) -> set[str]:
    """The states that some strip shows long enough for them to be seen."""
    return {
        span.what
        for strip in shown.strips.values()
        for span in strip
        if span.what == sessions.ZOMBIE or widest(span, panels) >= SHORTEST
    }


def indent(word: Word) -> float:
    """The indent of a word's text."""
    return WIDE + 0.07 if word.look else 0


def word_width(word: Word) -> float:
    """The width of a sample and its text."""
    return indent(word) + text_width(word.text, LEGEND_SIZE) + BETWEEN


def sample(sheet: Sheet, box: Box, look: str, shown: Board) -> None:
    """Draw a sample of a look, in the colour of one or two consumers."""
    x, y, wide, tall = box
    if look == GAP:
        gaps(sheet, [box])
    elif look in (SPLIT, ZOMBIE_OWNER):
        breaches(sheet, [box] if look == SPLIT else [], [box] if look == ZOMBIE_OWNER else [])
    elif look == STRIPED:
        name = next(name for name, stripes in shown.stripes.items() if stripes)
        bars(sheet, [box], shown.colours[name], shown.stripes[name])
    else:
        colours = list(shown.colours.values())[:2]
        each = wide / max(len(colours), 1)
        for at, colour in enumerate(colours):
            state(sheet, (x + at * each, y, each, tall), look, colour)


# --- looks -----------------------------------------------------------------------------


def gaps(sheet: Sheet, boxes: Sequence[Box]) -> None:
    """Draw gaps."""
    sheet.hatched(boxes, palette.GAP, "/////", zorder=1)


def breaches(sheet: Sheet, split: Sequence[Box], zombie: Sequence[Box]) -> None:
    """Draw breaches above the bars: red, and hatched in red for a zombie owner."""
    sheet.hatched(zombie, palette.BREACH, "xxxxx", zorder=3)
    sheet.boxes(split, palette.BREACH, zorder=4)


def bars(sheet: Sheet, boxes: Sequence[Box], colour: str, stripes: int) -> None:
    """Draw bars of a consumer, with as many stripes along them."""
    sheet.boxes(boxes, colour, zorder=2)
    for share in palette.STRIPES_AT[:stripes]:
        lines = [(x, y + tall * share, wide, tall * palette.STRIPE) for x, y, wide, tall in boxes]
        sheet.boxes(lines, palette.text_on(colour), zorder=2.1)


def name(sheet: Sheet, at: tuple[float, float], who: str, size: float, shown: Board) -> None:
    """Write the name of a consumer into its bar; stripes do not go through it."""
    colour = shown.colours[who]
    box = {"facecolor": colour, "edgecolor": "none", "pad": 0.4}
    sheet.text(
        *at,
        who,
        va="center_baseline",
        fontsize=size,
        color=palette.text_on(colour),
        bbox=box if shown.stripes[who] else None,
    )


def held(sheet: Sheet, box: Box, colour: str) -> None:
    """Draw a partition that a paused consumer has and does not fetch."""
    sheet.boxes([box], colour, alpha=palette.PALE, zorder=1.5)


def state(sheet: Sheet, box: Box, word: str, colour: str, stripes: int = 0) -> None:
    """Draw a part of a strip: a state, for a consumer of this colour."""
    x, y, wide, tall = box
    if word == sessions.CONNECTED:
        bars(sheet, [box], colour, stripes)
    elif word == sessions.SUSPENDED:
        sheet.hatched([box], colour, "||||||", linewidths=0.8, zorder=2)
    elif word == sessions.ZOMBIE:
        sheet.boxes([box], palette.ZOMBIE, zorder=3)
    elif word == sessions.NO_SESSION:
        sheet.boxes([box], palette.PAPER, edgecolors=colour, linewidths=0.8, zorder=2)
    elif word in (sessions.PAUSED, sessions.PAUSED_DEAD):
        held(sheet, box, colour)
        if word == sessions.PAUSED_DEAD:
            line = [((x, y + tall / 2), (x + wide, y + tall / 2))]
            sheet.lines(line, palette.ZOMBIE, linewidths=1.2, capstyle="butt", zorder=2)
    elif word in (sessions.NOT_RUNNING, sessions.LEFT_BEHIND, sessions.OUTLIVED):
        line = [((x, y + tall / 2), (x + wide, y + tall / 2))]
        if word == sessions.OUTLIVED:
            sheet.lines(line, colour, linewidths=3.2, capstyle="butt", zorder=1)
        elif word == sessions.LEFT_BEHIND:
            sheet.lines(line, colour, linewidths=1.4, capstyle="butt", zorder=1)
        else:
            sheet.lines(line, palette.GAP, linestyles=[(0, (1, 2.5))], zorder=1)
