"""The commands of `activity`: generate the events of a web site, and analyse them with Spark."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from watchkeeper.console import options
from watchkeeper.console.exit import HOLDS, print_json
from watchkeeper.console.options import example

ABOUT = {
    "feed": "Send the actions of a member to its followers.",
    "relevance": "Count how often pages are chosen for a phrase, and how they are rated.",
    "abuse": "Find callers over their limit, crawlers, and members that spread spam.",
    "alerts": "Find hosts that answer slowly, and measurements that came too late to count.",
    "warehouse": "Store every event: a table for each topic, a folder for each day.",
}
"""Job -> the first line of its help."""
MORE = """
LOGDIR is the folder of a broker's logs, as `activity produce` fills it; OUT is the folder of
the tables, as Parquet.

With --stream the job continues from the offsets in OUT, ends when it has caught up, and adds
to the tables. Without, it makes the tables anew from all events.

\b
Exit codes: 0 done; 2 interrupted, or some events came behind the watermark; 4 usage or
environment.
"""
config = click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="A YAML file with the sections activity and rules.",
)


@click.group(
    epilog=example(
        "watchkeeper activity produce --logs logs --events 20000",
        "watchkeeper activity feed logs tables",
    )
)
def activity() -> None:
    """Generate the events of a web site, and analyse them with Spark."""


@activity.command(epilog=example("watchkeeper activity produce --logs logs --events 20000"))
@click.option("--brokers", metavar="HOST:PORT,..", help="Send to these brokers.")
@click.option("--logs", type=click.Path(path_type=Path), help="Append to logs in this folder.")
@click.option(
    "--events",
    default=10_000,
    show_default=True,
    type=options.MANY,
    help="The number of actions of members.",
)
@options.seed
@config
@click.option(
    "--partitions",
    default=2,
    show_default=True,
    type=options.MANY,
    help="Partitions of each topic, with --logs.",
)
@click.option(
    "--compression",
    default="none",
    show_default=True,
    type=click.Choice(["none", "gzip", "snappy"]),
    help="The compression of messages.",
)
@options.as_json
def produce(
    brokers: str | None,
    logs: Path | None,
    events: int,
    seed: int,
    config: Path | None,
    partitions: int,
    compression: str,
    as_json: bool,
) -> None:
    """Generate the events of a web site, and produce them: a topic for each kind of event.

    The events of crawlers, spammers and hosts come in addition to those of members. One seed
    gives the same events on every machine and, in logs, the same files.
    """
    from watchkeeper.api.tables import console
    from watchkeeper.logs import activity

    target = activity.Target(brokers, logs, partitions, compression)
    sent = activity.produce(target, activity.settings_in(config), events, seed)
    if as_json:
        print_json({"events": dict(sorted(sent.items()))})
    else:
        activity.show_sent(sent, console())


def _command(name: str) -> click.Command:
    """Return the command of a job."""

    @click.argument("logdir", type=click.Path(path_type=Path))
    @click.argument("out", type=click.Path(path_type=Path))
    @click.option("--stream", is_flag=True, help="Continue from the offsets in OUT.")
    @config
    @click.option(
        "--master", help="The master of Spark: local[2], spark://HOST:PORT, yarn or k8s://..."
    )
    @options.as_json
    def job(
        logdir: Path,
        out: Path,
        stream: bool,
        config: Path | None,
        master: str | None,
        as_json: bool,
    ) -> int:
        from watchkeeper.api.tables import console
        from watchkeeper.logs import activity

        settings = activity.settings_in(config)
        ran = activity.run(name, logdir, out, settings, is_stream=stream, master=master)
        if as_json:
            print_json(ran.to_json())
        else:
            activity.show(ran, console())
        if ran.exit_code != HOLDS:
            print(ran.lost_text, file=sys.stderr)
        return ran.exit_code

    shown = example(f"watchkeeper activity {name} logs tables --stream")
    return click.command(name, help=f"{ABOUT[name]}\n{MORE}", epilog=shown)(job)


for job_name in ABOUT:
    activity.add_command(_command(job_name))
