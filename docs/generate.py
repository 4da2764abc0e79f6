"""Generates reference pages from the code, and checks that they are up to date.

    python docs/generate.py            write them
    python docs/generate.py --check    exit 1 if one of them is out of date

The second line of a generated page says so. The table of the properties that `hardened` holds
needs a run and a search for each fault; that takes about five minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from itertools import chain
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from docs.client_settings import client_settings_page
from docs.control_plane_findings import control_plane_findings_page
from docs.hardened import hardened_page
from docs.kafkalog import kafkalog_page
from docs.log_formats import log_formats_page
from docs.offsets_findings import offsets_findings_page
from docs.pagecache import pagecache_page
from docs.replication_findings import replication_findings_page
from docs.requests_08 import requests_08_body
from docs.truncation_rules import truncation_rules_page

from watchkeeper.model.controller.state_machines.variants import CONTROLLERS, ControllerVariant
from watchkeeper.model.group.variants import VARIANTS, Variant
from watchkeeper.model.judgement.judge import PROPERTIES
from watchkeeper.model.log.settings import SETTINGS as LOG_SETTINGS
from watchkeeper.model.log_08.cleaner_settings import (
    CLEANER,
    CLEANER_KEY,
    CLEANER_SETTINGS,
    RATIO,
    RATIO_KEY,
)
from watchkeeper.model.log_08.settings import NEVER, default_of
from watchkeeper.model.log_08.settings import SETTINGS as LOG_SETTINGS_08
from watchkeeper.model.offset_manager.settings import OFFSETS_SETTINGS
from watchkeeper.model.plan.faults import VERBS
from watchkeeper.model.plan.roles import ROLES
from watchkeeper.model.properties.control_plane.judges import OF_CONTROL_PLANES
from watchkeeper.model.properties.group_offsets import (
    FOUND,
    GOES_ON,
    GROUP_OFFSETS,
    NOT_MISSING,
    STAYS_EXPIRED,
)
from watchkeeper.model.properties.messages import MESSAGE_PROPERTIES
from watchkeeper.model.properties.verdicts import KNOWN_LIMIT
from watchkeeper.model.replication.truncation import TruncationRule
from watchkeeper.model.replication.variants import REPLICATIONS, ReplicationVariant
from watchkeeper.model.trace.kinds import MEANINGS
from watchkeeper.model.trace.trace import COLUMNS
from watchkeeper.real.broker.settings import DEFAULTS as BROKER_DEFAULTS
from watchkeeper.real.broker.settings import SETTINGS as BROKER_SETTINGS
from watchkeeper.real.broker.settings_08 import CREATION, CREATION_KEY, POLICY, POLICY_KEY
from watchkeeper.real.broker.settings_08 import DEFAULTS as BROKER_DEFAULTS_08
from watchkeeper.real.broker.settings_08 import SETTINGS as BROKER_SETTINGS_08
from watchkeeper.real.replica_broker.settings import NUMBERS as REPLICA_NUMBERS
from watchkeeper.real.replica_broker.settings import SWITCHES as REPLICA_SWITCHES
from watchkeeper.scenarios import load, shipped
from watchkeeper.scenarios.schema.message_schema import (
    DeliveryGuaranteeModel,
    HandlingModel,
    MirrorModel,
    ProducerModel,
    StorageModel,
)
from watchkeeper.scenarios.schema.replication_schema import OffsetsModel, ReplicationModel
from watchkeeper.scenarios.schema.schema import (
    BrokerModel,
    ClusterModel,
    ConsumerModel,
    EntryBase,
    FilterModel,
    GroupModel,
    LiveModel,
    ScenarioModel,
    SometimesModel,
    SweepModel,
    TopicModel,
    TriggerModel,
    WorldsModel,
    ZooKeeperModel,
)
from watchkeeper.scenarios.schema.search_schema import (
    BoundsModel,
    ReadModel,
    ScheduleModel,
    StepModel,
)

HOME = Path(__file__).parent
WIDTH = 80
"""The width of a command's help, independent of the terminal."""
MADE = "<!-- made by docs/generate.py; edit the code, not this page -->"


def cell(value: Any) -> str:
    """Format a value as a cell of a table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "as configured"
    if isinstance(value, TruncationRule):
        return value.name
    if isinstance(value, tuple):
        return "<br>".join(
            ": ".join(map(str, part)) if isinstance(part, tuple) else str(part) for part in value
        )
    return str(value).replace("|", "\\|").replace("\n", " ")


def table(head: list[str], rows: Iterator[list[str]]) -> str:
    """Format a table in Markdown."""
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)


def page(title: str, *parts: str) -> str:
    """Put a page together."""
    return "\n\n".join([f"# {title}\n{MADE}", *parts]) + "\n"


def variants_page() -> str:
    """The table of variants: a row for each design question, a column for each variant."""
    names = list(VARIANTS)
    no_question = ("name", "about")
    questions = [field.name for field in fields(Variant) if field.name not in no_question]
    rows = (
        [field.replace("_", " "), *(cell(getattr(VARIANTS[name], field)) for name in names)]
        for field in questions
    )
    about = "\n".join(f"- `{name}`: {row.about}" for name, row in VARIANTS.items())
    return page(
        "The variants",
        "A variant is a version of the protocol: an answer to every question that the design "
        "pages leave open, or answer in two ways. The protocol code reads this row; it never "
        "compares the name of a variant.",
        about,
        table(["question", *(f"`{name}`" for name in names)], rows),
        "## The controller\n\n"
        "In a cluster with `leaders: controller` the brokers of these variants elect a "
        "controller. The others have none: the design pages do not describe its program.",
        answers_table(CONTROLLERS, ControllerVariant),
        "## Replication\n\n"
        "With `replication` these brokers carry out the requests of their controller, and "
        "replicate messages. The [truncation rules](../explanation/truncation-rules.md) have a "
        "page of their own.",
        answers_table(REPLICATIONS, ReplicationVariant),
    )


def answers_table(versions: Mapping[str, Any], kind: type[Any]) -> str:
    """The versions of a part of the protocol: a row for each question."""
    names = list(versions)
    questions = [field.name for field in fields(kind) if field.name != "name"]
    rows = (
        [field.replace("_", " "), *(cell(getattr(versions[name], field)) for name in names)]
        for field in questions
    )
    return table(["question", *(f"`{name}`" for name in names)], rows)


def properties_page() -> str:
    """The properties."""
    rows = (
        [
            f"**{claim.name}**",
            claim.kind,
            claim.says,
            claim.exercise or "any run",
            "left out" if claim.is_optional else "*unknown*",
        ]
        for claim in (*PROPERTIES, *MESSAGE_PROPERTIES, *GROUP_OFFSETS, *OF_CONTROL_PLANES)
    )
    return page(
        "The properties",
        "Every run is judged by these properties, from its trace alone. A verdict is *holds*, "
        "*violated* or *unknown*. *Strict single ownership* is judged in every run and counts "
        "for the verdict only with `strict: true`, since no client of ZooKeeper can guarantee "
        "it unless the storage that it writes to checks a fence. *ISRs are known* is "
        "judged only with `isr_in_metadata: true`, since clients of 0.8 do not need ISRs. "
        f"*{FOUND.name}*, *{NOT_MISSING.name}*, *{GOES_ON.name}* and *{STAYS_EXPIRED.name}* are "
        "about runs of which a member keeps offsets in Kafka.",
        "A run that never exercises a property could not have violated it: the property is "
        "then *unknown*, in simulated and live runs, in searches and in the analysis. The last "
        "column has what that makes of the verdict of the run: it is *unknown* too, or the "
        "property is left out and the others decide.",
        table(["property", "kind", "meaning", "exercised by", "not exercised"], rows),
        "*At rest* means: no rebalance runs, no notification is in transit or unread, no timer "
        "for another attempt runs, no process is paused, every process is connected, its "
        "session is alive, no session of an ended process is left, no fault is in force, "
        "and all that for two ticks.",
    )


def faults_page() -> str:
    """The verbs of the timeline."""
    rows = (
        [
            f"`{verb.name}`",
            verb.kind,
            " or ".join(verb.targets),
            verb.about,
            ", ".join(
                f"`{option}`{' (required)' if option in verb.required else ''}"
                for option in verb.options
            ),
            ", ".join(verb.worlds) or f"none: {verb.lacking}",
        ]
        for verb in VERBS.values()
    )
    return page(
        "The verbs of a timeline",
        "An entry has one of these verbs with its target, a time (`at: 5s`) or a step of a "
        "member (`on:`), and options. Every entry counts its effects; an entry without an "
        "effect makes the run *unknown*.",
        table(["verb", "kind", "target", "effect", "options", "worlds"], rows),
        "Live, `lag` and the `partition` of a server need the ZooKeeper in Python, which a live "
        "run starts by default: Apache's servers talk to one another past the proxy.",
        "## Roles\n\n"
        "A process may be named by its role. The role is resolved when the action strikes; the "
        "report and the trace name the process that had it. `restart` starts the process again "
        "that an action with the same role has struck last. An action that finds no target "
        "does nothing, and the report and the trace have the reason. With several clusters a "
        "role has a prefix, as in `main:zookeeper/leader`.",
        table(["target", "meaning"], ([f"`{role.name}`", role.about] for role in ROLES.values())),
    )


def events_page() -> str:
    """The kinds of event."""
    return page(
        "The trace",
        "A trace is one table of events, in their order. In a file it is JSON lines: "
        f"a header, then an array for each event with these columns: {', '.join(COLUMNS)}. "
        "`detail` is an object whose keys depend on the kind.",
        table(
            ["kind", "meaning"],
            ([f"`{kind}`", meaning] for kind, meaning in MEANINGS.items()),
        ),
        "In the 0.8 layout an `applied` write of a partition's state says who leads from then "
        "on. Where the administrator elects the leaders, there is none when a replica that does "
        "not lead dies or comes back: its `isr` and `leader_epoch` are those of the last change "
        "of the leader.",
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
        "With `--protocol 0.7`, the default, the settings have the names and the defaults of "
        "Kafka 0.7. A setting by topic takes a value for each topic: `clicks:1000,orders:50`.",
        table(["name", "by topic", "default", "meaning"], chain(own, of_logs)),
        "## With `--protocol 0.8`\n\nThe names and the defaults are those of Kafka 0.8.2.",
        table(["name", "default", "meaning"], settings_of_08()),
        "## With `--replicate`\n\nA broker that replicates has these settings, and no others.",
        table(["name", "default", "meaning"], settings_of_replicas()),
    )


def settings_of_replicas() -> Iterator[list[str]]:
    """The rows of the settings of a broker that replicates."""
    for row, default, _ in REPLICA_NUMBERS:
        yield [f"`{row.key}`", cell(default), row.about]
    for switch in REPLICA_SWITCHES:
        yield [f"`{switch.key}`", str(switch.default).lower(), switch.about]


def settings_of_08() -> Iterator[list[str]]:
    """The rows of the settings of a broker of 0.8."""
    for row in BROKER_SETTINGS_08:
        yield [f"`{row.key}`", cell(BROKER_DEFAULTS_08[row.field]), row.about]
    yield [f"`{CREATION_KEY}`", "true", CREATION]
    for row in OFFSETS_SETTINGS:
        yield [f"`{row.key}`", cell(BROKER_DEFAULTS_08[row.field] // row.unit), row.about]
    yield [f"`{POLICY_KEY}`", "delete", POLICY]
    yield [f"`{CLEANER_KEY}`", "false", CLEANER]
    yield [f"`{RATIO_KEY}`", str(BROKER_DEFAULTS_08["min_dirty_ratio"]), RATIO]
    for row in CLEANER_SETTINGS:
        yield [f"`{row.key}`", cell(BROKER_DEFAULTS_08[row.field]), row.about]
    for each in LOG_SETTINGS_08:
        default = default_of(each)
        yield [f"`{each.key}`", "never" if default == NEVER else cell(default), each.about]


def requests_08_page() -> str:
    """The requests of 0.8."""
    return page("The requests of 0.8", requests_08_body(table))


MODELS = (
    ("The file", ScenarioModel),
    ("A cluster", ClusterModel),
    ("An ensemble", ZooKeeperModel),
    ("A broker", BrokerModel),
    ("A topic", TopicModel),
    ("Replication", ReplicationModel),
    ("The offsets topic", OffsetsModel),
    ("Storage", StorageModel),
    ("A producer", ProducerModel),
    ("A mirror", MirrorModel),
    ("A group", GroupModel),
    ("A delivery guarantee", DeliveryGuaranteeModel),
    ("Handling of messages", HandlingModel),
    ("A consumer", ConsumerModel),
    ("A filter", FilterModel),
    ("An entry of the timeline", EntryBase),
    ("A step", TriggerModel),
    ("An expected event", SometimesModel),
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
                "required"
                if field.is_required()
                else cell_default(field.get_default(call_default_factory=True)),
                field.description or "",
            ]
            for name, field in model.model_fields.items()
        )
        parts.append(f"## {title}\n\n{table(['field', 'default', 'meaning'], rows)}")
    return page(
        "Scenario files",
        "A scenario is a YAML file. `watchkeeper schema` prints its JSON Schema, which editors "
        "use to complete and check. Durations are written `5s`, `200ms`, `2m`; rates `200/s`; "
        "sizes `100B`, `2kB`.",
        *parts,
        "[Faults](faults.md) lists the verbs of the timeline and their options, "
        "[trace](trace.md) the kinds of event, and [settings](settings.md) those of a consumer.",
    )


def cell_default(value: Any) -> str:
    """A default as a cell."""
    if value is None or value in ([], {}):
        return ""
    return "" if hasattr(value, "model_fields_set") else f"`{value}`"


def shipped_page() -> str:
    """The shipped scenarios and their expectations."""
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
        "`watchkeeper run NAME` runs one of them wherever watchkeeper is installed. A property "
        "that *may* be violated is violated with some seeds.",
        *parts,
    )


def expectation(wanted: Any) -> str:
    """Describe the expectation of a variant that does not always hold."""
    text = f"violated: {', '.join(wanted.violated)}" if wanted.violated else "may hold"
    if wanted.limit:
        text = f"{KNOWN_LIMIT}: {', '.join(wanted.violated)}. {wanted.limit}"
    return text + (f"; may be violated: {', '.join(wanted.may)}" if wanted.may else "")


def command_line_page() -> str:
    """The help of every command."""
    from watchkeeper.cli.main import app

    parts = []
    context = click.Context(
        app, info_name="watchkeeper", terminal_width=WIDTH, **app.context_settings
    )
    parts.append(f"```text\n{app.get_help(context)}\n```")
    parts += commands_of(app, context, "")
    return page("The command line", *parts)


def commands_of(group: click.Group, context: click.Context, before: str) -> Iterator[str]:
    """The help of every command of a group and of its subgroups."""
    for name, command in group.commands.items():
        inner = click.Context(command, parent=context, info_name=name)
        # click keeps the help option of the context in which a command was shown first.
        command._help_option = None
        yield f"## {before}{name}\n\n```text\n{command.get_help(inner)}\n```"
        if isinstance(command, click.Group):
            yield from commands_of(command, inner, f"{before}{name} ")


PAGES: dict[str, Callable[[], str]] = {
    "reference/variants.md": variants_page,
    "reference/properties.md": properties_page,
    "reference/faults.md": faults_page,
    "reference/trace.md": events_page,
    "reference/settings.md": lambda: client_settings_page(page, table, cell),
    "reference/broker-settings.md": broker_settings_page,
    "reference/requests-08.md": requests_08_page,
    "reference/scenario-file.md": scenario_page,
    "reference/shipped-scenarios.md": shipped_page,
    "reference/command-line.md": command_line_page,
    "reference/log-formats.md": lambda: log_formats_page(page, table),
    "reference/kafkalog.md": lambda: kafkalog_page(page, table),
    "findings-control-plane.md": lambda: control_plane_findings_page(page, table),
    "explanation/what-hardened-holds.md": lambda: hardened_page(page, table),
    "explanation/the-pagecache.md": lambda: pagecache_page(page, table),
    "findings-replication.md": lambda: replication_findings_page(page, table),
    "findings-offsets.md": lambda: offsets_findings_page(page, table),
    "explanation/truncation-rules.md": lambda: truncation_rules_page(page, table),
}


def main(arguments: list[str]) -> int:
    """Write or check all pages, or the named ones."""
    stale = []
    wanted = [argument for argument in arguments if argument != "--check"] or list(PAGES)
    if unknown := sorted(set(wanted) - set(PAGES)):
        print(f"no page is named {', '.join(unknown)}; the pages are {', '.join(PAGES)}")
        return 2
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
        print(f"docs/{name} is out of date; run python docs/generate.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
