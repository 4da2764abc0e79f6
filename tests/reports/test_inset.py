"""A closer look where the whole run is too long, and a legend that says what can be seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from watchkeeper import simulate
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Header, Trace
from watchkeeper.reports.facts.spans import Span
from watchkeeper.reports.figure import palette
from watchkeeper.reports.figure.canvas import styled
from watchkeeper.reports.ownership.inset import round_step, worth_a_look
from watchkeeper.reports.ownership.layout import Layout, lay_out
from watchkeeper.reports.ownership.legend import GAP, STRIPED, WIDER, words
from watchkeeper.reports.ownership.ownership import board
from watchkeeper.reports.ownership.png import draw
from watchkeeper.reports.ownership.wording import PARTITIONS

SECOND = 1_000_000


def split_of(milliseconds: int, *, members: int = 2) -> Trace:
    """A run of a minute in which two members have a partition at once, this long."""
    ends = SECOND + milliseconds * 1000
    rows = [(0, "broker/0", EventKind.HOSTING, 0, "", "clicks", "0", 0, {"does": "begins"})]
    for at_us, who, does in (
        *((0, f"g/{at}", "begins") for at in range(2, members)),
        *((0, f"g/{at}", "ceases") for at in range(2, members)),
        (0, "g/0", "begins"),
        (SECOND, "g/1", "begins"),
        (ends, "g/0", "ceases"),
    ):
        rows.append((at_us, who, EventKind.FETCHING, 0, "g", "clicks", "0", 0, {"does": does}))
    rows.append((60 * SECOND, "", EventKind.RUN_ENDED, 0, "", "", "", 0, {}))
    return Trace(Header("split", "hardened", "sim", 0), rows)


def laid_out(trace: Trace) -> Layout:
    """Where things stand in the picture of a trace."""
    shown = board(trace)
    return lay_out(
        shown,
        heading_lines=1,
        width_of=lambda text: 0.08 * len(text),
        words=lambda panels: words(shown, panels),
        word_width=lambda word: 0.08 * len(word.text),
    )


def legend_of(layout: Layout) -> list[str]:
    """What the legend says."""
    return [word.text for line in layout.legend for _, word in line]


@pytest.mark.parametrize(("milliseconds", "panels"), [(3, 2), (20_000, 1)])
def test_a_split_that_cannot_be_seen_is_shown_closer(milliseconds: int, panels: int) -> None:
    """The legend says what is drawn wider than it lasted, and a second panel shows it."""
    layout = laid_out(split_of(milliseconds))

    assert len(layout.panels) == panels
    assert PARTITIONS.split in legend_of(layout)
    assert (WIDER in legend_of(layout)) == (panels == 2)
    if panels == 2:
        closer = layout.panels[1]
        assert closer.from_us < SECOND < SECOND + milliseconds * 1000 < closer.to_us
        assert closer.inches_a_us * milliseconds * 1000 > 1


def test_a_herd_is_shown_closer() -> None:
    """Where all happens in a small part of the run, its gaps are seen there and explained."""
    trace = simulate("mass-start-herd", variant="hardened", seed=0).trace
    layout = laid_out(trace)
    closer = layout.panels[1]

    assert closer.to_us - closer.from_us < trace.end_us / 100
    assert GAP in legend_of(layout)
    assert STRIPED in legend_of(layout)


def test_a_legend_explains_only_what_can_be_seen() -> None:
    """Gaps of microseconds are counted where they cannot be drawn."""
    rows = [(0, "broker/0", EventKind.HOSTING, 0, "", "clicks", "0", 0, {"does": "begins"})]
    for at in range(6):
        begins = at * 10 * SECOND
        for at_us, does in ((begins, "begins"), (begins + 10 * SECOND - 200, "ceases")):
            rows.append(
                (at_us, "g/0", EventKind.FETCHING, 0, "g", "clicks", "0", 0, {"does": does})
            )
    layout = laid_out(Trace(Header("gaps", "hardened", "sim", 0), rows))

    assert len(layout.panels) == 1
    assert GAP not in legend_of(layout)
    assert "5 gaps too short to be seen here" in legend_of(layout)


def test_looks_are_said_to_repeat() -> None:
    """More members than looks: the picture says so, and is drawn all the same."""
    trace = split_of(3, members=palette.LOOKS + 1)

    legend = legend_of(laid_out(trace))
    with styled():
        picture = draw(board(trace)).png()

    assert any(text.startswith(f"looks repeat after {palette.LOOKS} ") for text in legend)
    assert picture.startswith(b"\x89PNG")


def test_colour_and_stripes_together_tell_members_apart() -> None:
    """As many members as there are looks all look different."""
    names = [f"billing/{at}" for at in range(palette.LOOKS)]
    colours, stripes = palette.consumer_colours(names), palette.consumer_stripes(names)

    assert len({(colours[name], stripes[name]) for name in names}) == len(names)


@given(some.lists(some.integers(0, 10_000_000), max_size=40), some.integers(0, 20_000_000))
def test_a_closer_part_is_a_small_part_of_the_run(moments: list[int], end_us: int) -> None:
    """Whatever happens, the part lies within the run and is short against it."""
    moments = [at for at in moments if at <= end_us]

    found = worth_a_look([], moments, end_us)

    if found is not None:
        assert 0 <= found[0] < found[1] <= end_us
        assert found[1] - found[0] <= end_us / 6 + 30


def test_the_first_of_many_breaches_is_looked_at() -> None:
    """What goes before it and after without a break is in the part too."""
    zombie, split = Span("", 20_000, 28_000, 5, 6), Span("", 28_000, 28_300, 6, 7)
    later = Span("", 900_000, 900_001, 8, 9)

    found = worth_a_look([zombie, split, later], [], 1_000_000)

    assert found == (17_000, 32_000)


def test_steps_are_powers_of_ten() -> None:
    """They are not longer than what they are steps of."""
    assert [round_step(us) for us in (5, 10, 99, 6789)] == [1, 10, 10, 1000]


def test_pictures_with_two_panels_are_the_same_each_time(tmp_path: Path) -> None:
    """The same trace gives the same bytes."""
    with styled():
        pictures = {draw(board(split_of(3))).png() for _ in range(2)}

    assert len(pictures) == 1
