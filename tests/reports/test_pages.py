"""Pages as people meet them: in the dark, on a narrow screen, by keys, with a screen reader."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from bench.support.devtools import Tab, address_of, browser

from tests.support.accessibility import complaints
from tests.support.browser import needs_browser
from watchkeeper import simulate
from watchkeeper.cli.main import run_command
from watchkeeper.model.trace.trace import Trace
from watchkeeper.reports import write_spacetime_html
from watchkeeper.reports.spacetime.columns import differences
from watchkeeper.reports.spacetime.html import breach_spans, diagram_data
from watchkeeper.reports.spacetime.items import items
from watchkeeper.reports.spacetime.swimlanes import lanes

NARROW, WIDE = 390, 1440
STYLE = files("watchkeeper.reports").joinpath("figure/page.css").read_text(encoding="utf-8")
LEAST_CONTRAST = 4.5
"""What text needs on its ground, by the guidelines for accessible content, level AA."""
TEXTS = ("ink", "soft", "link", "breach", "good", "warn", "error", "ok", "watch", "fault")
GROUNDS = ("paper",)
ON_GROUNDS = (
    *(("ink", ground) for ground in ("raised", "hover", "chosen", "changed", "warn-ground")),
    *(("soft", "raised"), ("breach", "breach-ground"), ("good", "good-ground")),
)


# --- the data of the space-time page ---------------------------------------------------


@pytest.fixture(scope="module")
def expired() -> Trace:
    """A member goes on with claims that have gone with its session."""
    return simulate("session-expiry", variant="stale-memory", seed=0).trace


def test_the_columns_hold_every_item_and_event(expired: Trace) -> None:
    """Put together again, they are what was written."""
    shown = items(expired)
    number = {lane.name: at for at, lane in enumerate(lanes(expired))}
    data = json.loads(json.dumps(diagram_data(expired, shown)))

    words, columns, events = data["words"], data["items"], data["events"]
    assert [words[at] for at in columns["label"]] == [item.label for item in shown]
    assert list(accumulate(columns["from"])) == [item.start_us for item in shown]
    assert columns["node"] == [number.get(item.node, -1) for item in shown]
    ends = [None if item.end_us is None else item.end_us - item.start_us for item in shown]
    assert columns["to"] == ends
    numbers = [list(accumulate(some)) for some in columns["events"]]
    assert numbers == [[event.seq for event in item.events] for item in shown]

    known = {event.seq: event for item in shown for event in item.events}
    for at, seq in enumerate(accumulate(events["seq"])):
        parts = data["details"][events["detail"][at]]
        detail = json.loads('"'.join(words[part] for part in parts))
        assert detail == json.loads(json.dumps(known[seq].detail))
        assert words[events["kind"][at]] == known[seq].kind
    assert list(accumulate(events["us"])) == [known[seq].t_us for seq in sorted(known)]


def test_differences_add_up() -> None:
    """The sums of differences are the numbers, also where they decrease."""
    assert differences([5, 7, 7, 3]) == [5, 2, 0, -4]
    assert differences([]) == []


# --- contrast --------------------------------------------------------------------------


def schemes() -> dict[str, dict[str, str]]:
    """The colours of the pages, of the light scheme and of the dark one."""
    light, _, rest = STYLE.partition("@media screen and (prefers-color-scheme: dark)")
    dark = rest[: rest.index("}\n}")]
    return {"light": colours_in(light), "dark": colours_in(dark)}


def colours_in(style: str) -> dict[str, str]:
    """The colours that a style names."""
    return dict(re.findall(r"--([a-z-]+): (#[0-9a-f]+);", style))


def luminance(colour: str) -> float:
    """How light a colour is, from 0 to 1, as the guidelines define it."""
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, from 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_the_measure_of_contrast() -> None:
    """Black on white has the most; a grey that is too light is found."""
    assert round(contrast("#000", "#ffffff"), 6) == 21
    assert contrast("#999999", "#fff") < LEAST_CONTRAST


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_are_legible_on_their_ground(scheme: str) -> None:
    """Each colour of text, in both schemes."""
    colours = schemes()[scheme]
    pairs = [*((text, ground) for text in TEXTS for ground in GROUNDS), *ON_GROUNDS]

    weak = {pair for pair in pairs if contrast(*map(colours.get, pair)) < LEAST_CONTRAST}

    assert not weak


def test_both_schemes_have_every_colour() -> None:
    """A colour that one scheme lacks would be taken from the other."""
    found = schemes()
    assert set(found["light"]) == set(found["dark"]) > set(TEXTS)


# --- in a browser ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run in which properties are violated."""
    out = tmp_path_factory.mktemp("runs")
    run_command(["run", "session-expiry", "--variant", "stale-memory", "--out", str(out)])
    return (out / "latest").resolve()


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    """A page in a browser."""
    with browser() as opened:
        yield opened


def shown(tab: Tab, page: Path, where: str = "", *, width: int = WIDE, dark: bool = False) -> Tab:
    """Open a page, at an address within it."""
    tab.show(width=width, is_dark=dark)
    tab.open(address_of(page) + where)
    return tab


def status(tab: Tab) -> str:
    """What the page of space and time says beside its controls."""
    return str(tab.run("document.querySelector('#controls [role=status]').textContent"))


@needs_browser
@pytest.mark.parametrize(("width", "dark"), [(WIDE, False), (WIDE, True), (NARROW, False)])
def test_nothing_bars_the_way_into_a_page(run: Path, tab: Tab, width: int, dark: bool) -> None:
    """Contrast, names of controls, landmarks, headings; and no page is wider than the screen."""
    for page in sorted(run.glob("*.html")):
        shown(tab, page, width=width, dark=dark)
        assert not complaints(tab), page.name
        wider = tab.run("document.documentElement.scrollWidth - innerWidth")
        assert wider <= 0, page.name


@needs_browser
def test_axe_finds_what_is_wrong(run: Path, tab: Tab) -> None:
    """A button without a name, and grey words on white."""
    shown(tab, run / "ownership.html")
    tab.run("document.querySelector('#controls').append(document.createElement('button'))")
    tab.run("document.querySelector('header p').style.color = '#ccc'")

    found = {complaint.partition(":")[0] for complaint in complaints(tab)}

    assert {"button-name", "color-contrast"} <= found


@needs_browser
def test_dark_pages_are_dark(run: Path, tab: Tab) -> None:
    """The ground follows what the user prefers."""
    ground = "getComputedStyle(document.body).backgroundColor"
    for page in sorted(run.glob("*.html")):
        light = shown(tab, page).run(ground)
        dark = shown(tab, page, dark=True).run(ground)
        assert (light, dark) == ("rgb(255, 255, 255)", "rgb(18, 23, 30)"), page.name


@needs_browser
def test_the_page_opens_at_the_first_violation(run: Path, tab: Tab) -> None:
    """The one that the verdict names first, which its first line links."""
    shown(tab, run / "spacetime.html")

    seq = tab.run("Number(document.querySelector('.first-violation').hash.slice(5))")
    assert status(tab).startswith("Opened at the first violation")
    assert re.search(rf"#{seq}\b", status(tab))
    assert tab.run("pane.scrollTop") > 0


@needs_browser
def test_without_a_verdict_it_opens_at_the_first_breach(
    expired: Trace, tab: Tab, tmp_path: Path
) -> None:
    """The trace alone shows who fetched without a session."""
    shown(tab, tmp_path / write_spacetime_html(expired, tmp_path))

    assert status(tab).startswith("Opened at the first violation")
    first = breach_spans(expired)[0].first_seq
    assert tab.run(f"itemOf.get({first}) === marked")


SCROLLED = """
(async (steps) => {
  const next = () => new Promise(requestAnimationFrame);
  const edge = pane.getBoundingClientRect();
  const isInSight = (one) => {
    const box = one.getBoundingClientRect();
    return box.bottom > edge.top && box.top < edge.bottom;
  };
  const inSight = () => {
    const some = [...canvas.querySelectorAll("path, circle")].filter(isInSight);
    return some.map((one) => one.outerHTML).join();
  };
  const found = [];
  for (const step of steps) {
    const before = canvas.firstChild;
    pane.scrollTop += step;
    await next();
    await next();
    const [isKept, seen] = [canvas.firstChild === before, inSight()];
    const times = axis.textContent;
    drawPane();
    found.push([isKept, seen.length, seen === inSight() && times === axis.textContent]);
  }
  return found;
})([%s])
"""


@needs_browser
def test_scrolling_shows_what_is_in_sight(run: Path, tab: Tab) -> None:
    """A short step draws the axis alone; after any step nothing is missing."""
    shown(tab, run / "spacetime.html")

    found = tab.run(SCROLLED % "-99999, 100, 700, -100, 250, -900")

    assert [is_kept for is_kept, _, _ in found[1:]] == [True, False, True, True, False]
    assert all(number for _, number, _ in found)
    assert all(is_whole for _, _, is_whole in found)


A_FRAME = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
ON_PAPER = """
addEventListener("beforeprint", () => {
  const box = canvas.viewBox.baseVal;
  const marks = new Set(items.filter((one) => one.kind === "mark"));
  window.onPaper = [box.y, box.height, canvas.querySelectorAll("circle").length, marks.size];
});
"""


@needs_browser
def test_all_of_a_short_run_is_printed(run: Path, tab: Tab) -> None:
    """Wherever the pane is scrolled to; afterwards it is as before."""
    shown(tab, run / "spacetime.html").run(ON_PAPER)
    before = tab.run("[pane.scrollTop, canvas.outerHTML]")
    tab.call("Page.printToPDF")

    top, length, circles, marks = tab.run("onPaper")
    assert (top, length) == (0, pytest.approx(tab.run("height")))
    assert circles == marks > 0
    assert tab.run(f"{A_FRAME}.then(() => [pane.scrollTop, canvas.outerHTML])") == before


@needs_browser
def test_of_a_long_run_a_part_is_printed(run: Path, tab: Tab) -> None:
    """From what is in sight, and the paper says what is left out."""
    shown(tab, run / "spacetime.html").run(f"{ON_PAPER}; height = 2 * MOST_PRINTED")
    tab.run("addEventListener('beforeprint', () => { window.said = stage.textContent; })")
    from_px = tab.run("pane.scrollTop")
    tab.call("Page.printToPDF")
    tab.run(A_FRAME)

    assert tab.run("onPaper")[:2] == [from_px, tab.run("MOST_PRINTED")]
    assert re.search(r"Of this run [\d.]+ s to [\d.]+ s are printed", tab.run("said"))
    assert "are printed" not in tab.run("stage.textContent")


@needs_browser
def test_an_address_names_a_moment_or_an_event(run: Path, tab: Tab) -> None:
    """What is not drawn is said."""
    page = run / "spacetime.html"
    moment = int(shown(tab, page).run("moments[20]"))

    assert status(shown(tab, page, f"#us={moment}")).endswith(f"{moment / 1e6:.6f} s.")
    assert "no item is drawn; the nearest ones" in status(shown(tab, page, f"#us={moment + 1}"))
    assert status(shown(tab, page, "#seq=999999")).startswith("Event #999999 is not drawn")


@needs_browser
def test_a_click_on_a_bar_leads_to_its_moment(run: Path, tab: Tab) -> None:
    """The middle of the longest bar, and not its begin."""
    shown(tab, run / "ownership.html")
    span = tab.run("data.rows[0].fetched.toSorted((a, b) => b[1] - b[0] - (a[1] - a[0]))[0]")
    middle = (span[0] + span[1]) / 2

    place = tab.run(f"placeOfClick({json.dumps(span)}, x({middle}))")
    begin = tab.run(f"placeOfClick({json.dumps(span)}, x({span[0]}) + 1)")

    assert place == f"us={round(middle)}"
    assert begin == f"seq={span[2]}"


@needs_browser
def test_rows_are_found(run: Path, tab: Tab) -> None:
    """By marks, by the name of a partition, and by its member; all of them come back."""
    shown(tab, run / "ownership.html")
    rows = "panes[0].lines.filter((line) => line.row).length"
    everything = tab.run("data.rows.length")
    marked = tab.run("data.rows.filter((row) => row.breaches.length).length")
    assert 0 < marked < everything

    key(tab, "m")
    assert tab.run(rows) == marked
    assert tab.run("marks.getAttribute('aria-pressed')") == "true"
    key(tab, "m")
    tab.run("search.value = 'clicks/0'; search.dispatchEvent(new Event('input'))")
    assert 0 < tab.run(rows) < everything
    tab.run("search.value = 'no such member'; search.dispatchEvent(new Event('input'))")
    assert tab.run(rows) == 0
    key(tab, "n")
    assert tab.run(rows) == everything
    assert tab.run("marked.span[0]") == tab.run("found('breaches')[0].span[0]")


@needs_browser
def test_keys_and_the_map_move_the_view(run: Path, tab: Tab) -> None:
    """Keys zoom and pan; the frame on the map is the view; typing is no command."""
    shown(tab, run / "ownership.html")
    length, end = "view.to - view.from", tab.run("data.end")

    key(tab, "+")
    assert tab.run(length) == pytest.approx(end / 2)
    frame = "document.querySelector('.minimap .view')"
    wide = f"Number({frame}.getAttribute('width'))"
    assert tab.run(wide) == pytest.approx(tab.run("(width - LEFT - RIGHT) / 2"))
    left = tab.run("view.from")
    key(tab, "ArrowRight")
    assert tab.run("view.from") > left
    key(tab, "0")
    assert tab.run(length) == end
    key(tab, "+", "search")
    assert tab.run(length) == end


def key(tab: Tab, name: str, target: str = "document.body") -> Any:
    """Press a key."""
    event = f"new KeyboardEvent('keydown', {{ key: {json.dumps(name)}, bubbles: true }})"
    return tab.run(f"{target}.dispatchEvent({event})")


@needs_browser
def test_numbers_of_an_axis_have_one_precision(run: Path, tab: Tab) -> None:
    """Whatever part is in view."""
    shown(tab, run / "ownership.html")
    for from_us, to_us in ((0, 60_000_000), (14_000_000, 14_003_000), (1_000_000, 2_500_000)):
        tab.run(f"look({from_us}, {to_us})")
        texts = tab.run("numbers().map((us) => tickText(us, numbers()))")
        assert len(texts) == len(set(texts)) > 2
        assert len({len(text.partition(".")[2]) for text in texts}) == 1
