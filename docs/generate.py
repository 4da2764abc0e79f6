"""Writes the reference pages that can be made from the code, and checks that they are.

    python docs/generate.py            write them
    python docs/generate.py --check    exit 1 if one of them is not what the code says

A page that is generated says so in its second line. The table of what `hardened` holds is
made by running it, fault by fault; that takes two minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from itertools import chain
from pathlib import Path
from typing import Any

import click
from hardened import hardened_page
from kafkalog import kafkalog_page
from log_formats import log_formats_page
from pagecache import pagecache_page

from model.faults import VERBS
from model.log.settings import SETTINGS as LOG_SETTINGS
from model.messages import MESSAGE_PROPERTIES
from model.properties import PROPERTIES
from model.settings import SETTINGS
from model.trace import COLUMNS, KINDS
from model.variants import VARIANTS, Variant
from real.broker_settings import DEFAULTS as BROKER_DEFAULTS
from real.broker_settings import SETTINGS as BROKER_SETTINGS
from scenarios import load, shipped
from scenarios.message_schema import (
    HandlingModel,
    MirrorModel,
    ProducerModel,
    PromiseModel,
    StorageModel,
)
from scenarios.schema import (
    BrokerModel,
    ClusterModel,
    ConsumerModel,
    EntryBase,
    FilterModel,
    GroupModel,
    HappeningModel,
    LiveModel,
    ScenarioModel,
    SweepModel,
    TopicModel,
    TriggerModel,
    WorldsModel,
    ZooKeeperModel,
)
from scenarios.search_schema import BoundsModel, ReadModel, ScheduleModel, StepModel

HOME = Path(__file__).parent
WIDTH = 80
"""Of the help of a command, whatever the terminal of whoever writes the pages."""
MADE = "<!-- made by docs/generate.py; edit the code, not this page -->"


def cell(value: Any) -> str:
    """A value as a cell of a table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "as configured"
    if isinstance(value, tuple):
        return "<br>".join(
            ": ".join(map(str, part)) if isinstance(part, tuple) else str(part) for part in value
        )
    return str(value).replace("|", "\\|").replace("\n", " ")


def table(head: list[str], rows: Iterator[list[str]]) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)


def page(title: str, *parts: str) -> str:
    """A whole page."""
    return "\n\n".join([f"# {title}\n{MADE}", *parts]) + "\n"


def variants_page() -> str:
    """The variants' table: a row for each question, a column for each variant."""
    names = list(VARIANTS)
    no_question = ("name", "about", "flaw")
    questions = [field.name for field in fields(Variant) if field.name not in no_question]
    rows = (
        [field.replace("_", " "), *(cell(getattr(VARIANTS[name], field)) for name in names)]
        for field in questions
    )
    about = "\n".join(f"- `{name}`: {row.about}" for name, row in VARIANTS.items())
    return page(
        "The variants",
        "A variant is a version of the protocol: an answer to every question that the design "
        "pages leave open, or settle in two ways. The code of the protocol asks the row; it "
        "never asks for a variant by name.",
        about,
        table(["question", *(f"`{name}`" for name in names)], rows),
    )


def properties_page() -> str:
    """The properties."""
    rows = (
        [f"**{claim.name}**", claim.kind, claim.says]
        for claim in (*PROPERTIES, *MESSAGE_PROPERTIES)
    )
    return page(
        "The properties",
        "Every run is judged by these, from its trace alone. A verdict is *holds*, *violated* "
        "or *unknown*. *Strict single ownership* is judged in every run and counts for the "
        "verdict where a scenario says `strict: true`, since no client of ZooKeeper can promise "
        "it without fencing what it writes to.",
        table(["property", "kind", "says"], rows),
        "*At rest* means: no rebalance runs, no notification is under way or unread, no timer "
        "for another attempt runs, no process stands still, every process is connected, its "
        "session is alive, no session is left of a process that is gone, no fault is in force, "
        "and all that for two ticks.",
    )


def faults_page() -> str:
    """The alphabet of the timeline."""
    rows = (
        [
            f"`{verb.name}`",
            verb.kind,
            " or ".join(verb.targets),
            verb.about,
            ", ".join(
                f"`{one}`{' (needed)' if one in verb.required else ''}" for one in verb.options
            ),
            ", ".join(verb.worlds) or f"none: {verb.lacking}",
        ]
        for verb in VERBS.values()
    )
    return page(
        "What can happen in a timeline",
        "An entry has one of these verbs with its target, a moment (`at: 5s`, or `on:` a step of "
        "a member), and options. Every entry counts what it did; one that did nothing makes the "
        "run *unknown*.",
        table(["verb", "kind", "target", "what happens", "options", "worlds"], rows),
    )


def events_page() -> str:
    """The kinds of event."""
    return page(
        "The trace",
        "A trace is one table in the order in which things happened. In a file it is JSON lines: "
        f"a header, then an array for each event with these columns: {', '.join(COLUMNS)}. "
        "`detail` is an object whose keys depend on the kind.",
        table(["kind", "what it says"], ([f"`{kind}`", said] for kind, said in KINDS.items())),
    )


def settings_page() -> str:
    """A consumer's settings."""
    rows = (
        [
            f"`{row.key_07}`",
            f"`{row.key_08}`",
            cell(row.default_07 if row.default_07 is not None else "the sync time"),
            cell(row.default_08 if row.default_08 is not None else "the sync time"),
            row.about + (f" ({', '.join(row.choices)})" if row.choices else ""),
        ]
        for row in SETTINGS
    )
    return page(
        "A consumer's settings",
        "They have Kafka's own names; either release's name is understood in every variant, and "
        "the default is that of the release a variant stands for. `hardened` has those of 0.8.2.",
        table(["name in 0.7.2", "name in 0.8.2", "default", "default", "what it sets"], rows),
    )


def broker_settings_page() -> str:
    """A broker's settings."""
    own = (
        [f"`{row.key}`", "", cell(BROKER_DEFAULTS[row.field]), row.about]
        for row in BROKER_SETTINGS
    )
    of_logs = (
        [
            f"`{row.key}`",
            f"`{row.key_by_topic}`" if row.key_by_topic else "",
            cell(row.default),
            row.about,
        ]
        for row in LOG_SETTINGS
    )
    return page(
        "A broker's settings",
        "They have the names of Kafka 0.7, and its defaults. What can be set of single topics "
        "takes a value for each: `clicks:1000,orders:50`.",
        table(["name", "by topic", "default", "what it sets"], chain(own, of_logs)),
    )


MODELS = (
    ("The file", ScenarioModel),
    ("A cluster", ClusterModel),
    ("An ensemble", ZooKeeperModel),
    ("A broker", BrokerModel),
    ("A topic", TopicModel),
    ("Storage", StorageModel),
    ("A producer", ProducerModel),
    ("A mirror", MirrorModel),
    ("A group", GroupModel),
    ("A promise", PromiseModel),
    ("Handling", HandlingModel),
    ("A consumer", ConsumerModel),
    ("A filter", FilterModel),
    ("An entry of the timeline", EntryBase),
    ("A step", TriggerModel),
    ("Something to look for", HappeningModel),
    ("Bounds", BoundsModel),
    ("Schedules", ScheduleModel),
    ("Steps of a schedule", StepModel),
    ("Reads of a step", ReadModel),
    ("Sweeps", SweepModel),
    ("Worlds", WorldsModel),
    ("Live runs", LiveModel),
)


def scenario_page() -> str:
    """The fields of a scenario file."""
    parts = []
    for title, model in MODELS:
        rows = (
            [
                f"`{field.alias or name}`",
                "needed"
                if field.is_required()
                else cell_default(field.get_default(call_default_factory=True)),
                field.description or "",
            ]
            for name, field in model.model_fields.items()
        )
        parts.append(f"## {title}\n\n{table(['field', 'default', 'what it says'], rows)}")
    return page(
        "Scenario files",
        "A scenario is a YAML file. `watchkeeper schema` prints its JSON Schema, which editors "
        "use to complete and check. Durations are written `5s`, `200ms`, `2m`; rates `200/s`; "
        "sizes `100B`, `2kB`.",
        *parts,
        "The verbs of the timeline and their options stand in [faults](faults.md), the kinds of "
        "event in [trace](trace.md), a consumer's settings in [settings](settings.md).",
    )


def cell_default(value: Any) -> str:
    """A default as a cell."""
    if value is None or value in ([], {}):
        return ""
    return "" if hasattr(value, "model_fields_set") else f"`{value}`"


def shipped_page() -> str:
    """The scenarios that are shipped, and what each expects."""
    parts = []
    for name in shipped():
        scenario = load(name)
        rows = (
            [f"`{variant}`", wanted if isinstance(wanted, str) else expectation(wanted)]
            for variant, wanted in scenario.expectations.items()
        )
        parts.append(
            f"## {name}\n\n{scenario.about.strip()}\n\n{table(['variant', 'expected'], rows)}"
        )
    return page(
        "The shipped scenarios",
        "`watchkeeper run NAME` runs one of them wherever watchkeeper is installed. Where a "
        "property *may* be violated, chance decides: some seeds show it.",
        *parts,
    )


def expectation(wanted: Any) -> str:
    """What is expected of a variant that does not hold."""
    said = f"violated: {', '.join(wanted.violated)}" if wanted.violated else "may hold"
    return said + (f"; may be violated: {', '.join(wanted.may)}" if wanted.may else "")


def command_line_page() -> str:
    """The help of every command."""
    from watchkeeper.cli import app

    parts = []
    context = click.Context(
        app, info_name="watchkeeper", terminal_width=WIDTH, **app.context_settings
    )
    parts.append(f"```text\n{app.get_help(context)}\n```")
    parts += commands_of(app, context, "")
    return page("The command line", *parts)


def commands_of(group: click.Group, context: click.Context, before: str) -> Iterator[str]:
    """The help of every command of a group, and of those below it."""
    for name, command in sorted(group.commands.items()):
        inner = click.Context(command, parent=context, info_name=name)
        yield f"## {before}{name}\n\n```text\n{command.get_help(inner)}\n```"
        if isinstance(command, click.Group):
            yield from commands_of(command, inner, f"{before}{name} ")


PAGES: dict[str, Callable[[], str]] = {
    "reference/variants.md": variants_page,
    "reference/properties.md": properties_page,
    "reference/faults.md": faults_page,
    "reference/trace.md": events_page,
    "reference/settings.md": settings_page,
    "reference/broker-settings.md": broker_settings_page,
    "reference/scenario-file.md": scenario_page,
    "reference/shipped-scenarios.md": shipped_page,
    "reference/command-line.md": command_line_page,
    "reference/log-formats.md": lambda: log_formats_page(page, table),
    "reference/kafkalog.md": lambda: kafkalog_page(page, table),
    "explanation/what-hardened-holds.md": lambda: hardened_page(page, table),
    "explanation/the-pagecache.md": lambda: pagecache_page(page, table),
}


def main(arguments: list[str]) -> int:
    """Write the pages, or those that are named, or check them."""
    stale = []
    wanted = [one for one in arguments if one != "--check"] or list(PAGES)
    for name in wanted:
        make = PAGES[name]
        path = HOME / name
        text = make()
        if "--check" not in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(name)
    for name in stale:
        print(f"docs/{name} is not what the code says; run python docs/generate.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
