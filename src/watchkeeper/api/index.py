"""The first page of a run: verdict, what happened, what is violated, and where everything is.

It is made from the verdict in the run's folder and from its trace, so it can be made again
later. It needs no script and no network; the pictures are files beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from watchkeeper.api import folder
from watchkeeper.api.synopsis import synopsis
from watchkeeper.model.properties.verdicts import KNOWN_LIMIT, Verdict, seconds
from watchkeeper.model.trace.trace import Trace
from watchkeeper.reports.figure.page import document, with_run
from watchkeeper.reports.figure.title import WORLDS

ABOUT: Mapping[str, str] = {
    "ownership.html": "who fetched each partition and when",
    "spacetime.html": "every request, and which watch notified whom",
    "messages.html": "throughput, lag and latency of messages",
    "connections.png": "who fetches from which broker at the end",
    "leaders.png": "who leads each partition, with which ISR, and what is committed",
    "reassignment.png": "how each partition moved to other brokers",
    folder.VERDICT: "the verdict as JSON",
    folder.SCENARIO: "the scenario as it was run",
    folder.PROFILE: "the latencies of the run",
    folder.TRACE: "every event",
}
"""File -> what it shows, in the order of the page."""
SPACETIME = "spacetime.html"
PICTURES = ("ownership.png", "leaders.png", "reassignment.png", "messages.png")
STYLE = """\
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --paper: #fff;
  --raised: #f6f8fa; --faint: #d0d7de; --good: #1a7f37; --bad: #cf222e;
  --open: #8a5d00; --link: #0969da; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #a3adb8;
  --paper: #12171e; --raised: #1d242d; --faint: #4a535e; --good: #56d07a; --bad: #ff7b72;
  --open: #e3b341; --link: #6cb0ff; } }
body { max-width: 1040px; margin: 24px auto; padding: 0 20px; color: var(--ink);
  background: var(--paper); font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif;
  overflow-wrap: anywhere; }
h1 { margin: 0; font-size: 22px; }
h2 { margin: 28px 0 8px; font-size: 16px; }
small, .soft { color: var(--soft); font-weight: normal; }
a { color: var(--link); }
.verdict { font-weight: 600; }
.holds { color: var(--good); } .violated { color: var(--bad); } .unknown { color: var(--open); }
.limit { color: var(--link); }
table { border-collapse: collapse; }
td, th { padding: 3px 16px 3px 0; text-align: left; vertical-align: top; font-weight: normal; }
th { color: var(--soft); }
.why { margin: 8px 0; } .why td:first-child { white-space: nowrap; }
pre { padding: 10px 12px; overflow-wrap: anywhere; white-space: pre-wrap;
  background: var(--raised); border-radius: 6px; }
img { max-width: 100%; background: #fff; border: 1px solid var(--faint); border-radius: 6px; }
@media (max-width: 480px) { td, th { display: block; padding: 0; } tr { display: block;
  margin-bottom: 10px; } }
@media print { body { margin: 0; max-width: none; } h2 { break-after: avoid; }
  img, tr { break-inside: avoid; } }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' file:"
WORDS = {
    True: "as the scenario expects",
    False: "not as the scenario expects",
    None: "",
}


def write_index(home: Path, verdict: Mapping[str, Any], trace: Trace) -> str:
    """Write the page into the folder of a run; the name of the file."""
    parts = (
        *_head(verdict, trace),
        *_findings(verdict["properties"], known_limit=bool(verdict["known_limit"])),
        *_pictures(home),
        *_timeline(verdict["faults"]),
        *_again(verdict),
        *_files(home),
    )
    title = f"{verdict['scenario']}, {verdict['variant']}: {verdict['verdict']}"
    body = "\n".join(("<main>", *parts, "</main>"))
    text = document(title=title, policy=POLICY, style=STYLE, body=body)
    _say_in_pages(home, verdict)
    return folder.write_text(home / folder.INDEX, text)


def _say_in_pages(home: Path, verdict: Mapping[str, Any]) -> None:
    """Say in each page of the run what came of it, and where its first page and others are."""
    pages = [name for name in ABOUT if name.endswith(".html") and (home / name).exists()]
    for name in pages:
        links = [link(folder.INDEX, "all of this run")]
        links += [link(other, Path(other).stem) for other in pages if other != name]
        links += _first_violation(verdict)
        word, style = _word(verdict)
        command = verdict["command"]
        say_in_page(home / name, word=word, style=style, links=links, command=command)


def _first_violation(verdict: Mapping[str, Any]) -> Iterator[str]:
    """Yield a link to the moment of the first violation, if one is known."""
    found = [one for one in verdict["properties"] if one["verdict"] == Verdict.VIOLATED.value]
    known = [one for one in found if "why" in one]
    if known:
        first = min(known, key=lambda one: (not one["counts"], one["why"]["at_s"]))
        seq, at = first["why"]["seq"], seconds(round(first["why"]["at_s"] * 1e6))
        yield (
            f'<a class="first-violation" href="{SPACETIME}#seq={seq}">'
            f"{escape(first['name'])} violated at {at}</a>"
        )


def _word(verdict: Mapping[str, Any]) -> tuple[str, str]:
    """The word for what came of a run, and its style."""
    word = str(verdict["verdict"])
    return (KNOWN_LIMIT, "limit") if verdict["known_limit"] else (word, word)


# --- the first line of each other page ---------------------------------------------------


def say_in_page(
    page: Path, *, word: str, links: Sequence[str], command: str, style: str = ""
) -> None:
    """Write the line into a page, in place of an earlier one; `links` are markup."""
    parts = " · ".join((f'<span class="{style or word}">{word}</span>', *links))
    markup = f'<p class="run">{parts}<br><code>{escape(command)}</code></p>'
    folder.write_text(page, with_run(page.read_text(encoding="utf-8"), markup))


def link(name: str, text: str) -> str:
    """Return a link to a file beside the page."""
    return f'<a href="{quote(name)}">{escape(text)}</a>'


def say_in_search(home: Path, about: Mapping[str, str], *, word: str, command: str) -> None:
    """Say in each page of a search what came of it, and link the other files of its folder."""
    there = {name: text for name, text in about.items() if (home / name).exists()}
    for name in there:
        if name.endswith(".html"):
            others = [link(other, text) for other, text in there.items() if other != name]
            say_in_page(home / name, word=word, links=others, command=command)


# --- the head ---------------------------------------------------------------------------


def _head(verdict: Mapping[str, Any], trace: Trace) -> Iterator[str]:
    name, variant = escape(verdict["scenario"]), escape(verdict["variant"])
    where = f"{variant}, {WORLDS[verdict['world']]}, seed {verdict['seed']}"
    yield f"<h1>{name} <small>{where}</small></h1>"
    word, style = _word(verdict)
    met = "" if verdict["known_limit"] else WORDS[verdict["met"]]
    yield f'<p><span class="verdict {style}">{word}</span>{", " if met else ""}{met}</p>'
    for sentence in (verdict["known_limit"], synopsis(trace)):
        if sentence:
            yield f"<p>{escape(sentence)}</p>"


# --- properties ------------------------------------------------------------------------


def _findings(properties: Sequence[Mapping[str, Any]], *, known_limit: bool) -> Iterator[str]:
    """The violated ones first, then the open ones; the others by their names."""
    violated = [one for one in properties if one["verdict"] == Verdict.VIOLATED.value]
    is_unknown = Verdict.UNKNOWN.value
    unknown = [one for one in properties if one["verdict"] == is_unknown and one["counts"]]
    if violated or unknown:
        yield "<h2>What needs a look</h2>"
        style = "limit" if known_limit else "violated"
        yield from _rows(
            [*((one, style) for one in violated), *((one, "unknown") for one in unknown)]
        )
    held = [one for one in properties if one["verdict"] == Verdict.HOLDS.value]
    if held:
        number = len(held)
        yield f"<h2>{number} {'property holds' if number == 1 else 'properties hold'}</h2>"
        yield f"<p>{_names(held)}</p>"
    rest = [one for one in properties if one["verdict"] == is_unknown and not one["counts"]]
    if rest:
        yield f'<p class="soft">Not exercised by this run: {_names(rest)}.</p>'


def _rows(findings: Iterable[tuple[Mapping[str, Any], str]]) -> Iterator[str]:
    yield "<table>"
    for finding, style in findings:
        name, evidence = escape(finding["name"]), escape(finding["evidence"])
        why = "".join(_chain(finding["why"])) if "why" in finding else ""
        yield f'<tr><td class="{style}">{name}</td><td>{evidence}{why}</td></tr>'
    yield "</table>"


def _chain(why: Mapping[str, Any]) -> Iterator[str]:
    """What led to a violation: a row an event, whose moment is a link into the page of it."""
    yield '<table class="why">'
    for line in why["lines"]:
        at = seconds(round(line["at_s"] * 1e6))
        there = f'<a href="{SPACETIME}#seq={line["seq"]}">{at}</a>'
        yield f"<tr><td>{there}</td><td>{escape(line['text'])}</td></tr>"
    there = f'<a href="{SPACETIME}#seq={why["seq"]}">the moment itself</a>'
    yield f"<tr><td></td><td>{there}</td></tr></table>"


def _names(findings: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(
        f'<span title="{escape(one["evidence"])}">{escape(one["name"])}</span>'
        for one in findings
    )


# --- what there is ---------------------------------------------------------------------


def _pictures(home: Path) -> Iterator[str]:
    for name in PICTURES:
        if (home / name).exists():
            page = f"{Path(name).stem}.html"
            image = f'<img src="{quote(name)}" alt="{escape(ABOUT.get(page, name))}">'
            is_page = (home / page).exists()
            yield f'<p><a href="{quote(page)}">{image}</a></p>' if is_page else f"<p>{image}</p>"


def _timeline(faults: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not faults:
        return
    yield "<h2>Timeline</h2>"
    yield "<table><tr><th>at</th><th>what</th><th>effect</th></tr>"
    for fault in faults:
        at = "" if fault["at_s"] is None else seconds(round(fault["at_s"] * 1e6))
        what = f"{fault['kind']} {fault['target']}"
        effect = fault.get("missed") or ", ".join(
            f"{name} {count}" for name, count in fault["effects"].items()
        )
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in (at, what, effect))
        yield f"<tr>{cells}</tr>"
    yield "</table>"


def _again(verdict: Mapping[str, Any]) -> Iterator[str]:
    yield "<h2>Run it again</h2>"
    yield f"<pre>{escape(verdict['command'])}</pre>"
    yield f'<p class="soft">The trace has the SHA-256 {escape(verdict["fingerprint"])}.</p>'


def _files(home: Path) -> Iterator[str]:
    yield "<h2>Pages and files</h2>"
    yield "<table>"
    for name, about in ABOUT.items():
        if (home / name).exists():
            yield f'<tr><td><a href="{quote(name)}">{name}</a></td><td>{escape(about)}</td></tr>'
    yield "</table>"
