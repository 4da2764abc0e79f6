"""The commands that generate the activity of a site and make answers of it; `cli` adds them."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from watchkeeper import options
from watchkeeper.endings import HOLDS, print_json

ABOUT = {
    "feed": "Tell what members do to all who follow them.",
    "relevance": "Count how often pages are chosen for a phrase, and how they are rated.",
    "abuse": "Find callers over their limit, crawlers, and members that spread spam.",
    "alerts": "Find hosts that answer slowly, and what was measured too late to count.",
    "warehouse": "Store every event: a table for each topic, a folder for each day.",
}
"""Job -> what it does."""
MORE = """
LOGDIR is a broker's folder of logs, as `activity produce` fills it; OUT is the folder of the
tables, as Parquet.

With --stream it reads on from where it stood in OUT, ends when it has caught up, and adds to
the tables. Without, it makes them anew from all there is.

\b
Exit codes: 0 done; 2 interrupted, or some events came behind the watermark; 4 usage or
environment.
"""
config = click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="A YAML file with the sections activity and rules.",
)


@click.group()
def activity() -> None:
    """Generate the activity of a site, and make answers of it with Spark."""


@activity.command()
@click.option("--brokers", metavar="HOST:PORT,..", help="Send to these.")
@click.option("--logs", type=click.Path(path_type=Path), help="Append to logs in this folder.")
@click.option(
    "--events",
    default=10_000,
    show_default=True,
    type=options.MANY,
    help="How many things members do.",
)
@click.option("--seed", default=0, show_default=True, help="What chance begins with.")
@config
@click.option(
    "--partitions",
    default=2,
    show_default=True,
    type=options.MANY,
    help="Of each topic, with --logs.",
)
@click.option(
    "--compression",
    default="none",
    show_default=True,
    type=click.Choice(["none", "gzip", "snappy"]),
    help="Of messages.",
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
    """Generate what happens on a site, and produce it: a topic for each kind of event.

    What crawlers, spammers and hosts do comes on top of what members do. One seed gives the
    same events, on every machine; in logs, where their key says, the same files.
    """
    from watchkeeper import activity
    from watchkeeper.printing import console

    target = activity.Target(brokers, logs, partitions, compression)
    sent = activity.produce(target, activity.settings_in(config), events, seed)
    if as_json:
        print_json({"events": dict(sorted(sent.items()))})
    else:
        activity.show_sent(sent, console())


def _command(name: str) -> click.Command:
    """The command of a job."""

    @click.argument("logdir", type=click.Path(path_type=Path))
    @click.argument("out", type=click.Path(path_type=Path))
    @click.option("--stream", is_flag=True, help="Go on from where it stood.")
    @config
    @click.option("--master", help="Spark's: local[2], spark://HOST:PORT, yarn or k8s://...")
    @options.as_json
    def job(
        logdir: Path,
        out: Path,
        stream: bool,
        config: Path | None,
        master: str | None,
        as_json: bool,
    ) -> int:
        from watchkeeper import activity
        from watchkeeper.printing import console

        settings = activity.settings_in(config)
        ran = activity.run(name, logdir, out, settings, is_stream=stream, master=master)
        if as_json:
            print_json(ran.to_json())
        else:
            activity.show(ran, console())
        if ran.exit_code != HOLDS:
            print(ran.said_of_lost, file=sys.stderr)
        return ran.exit_code

    return click.command(name, help=f"{ABOUT[name]}\n{MORE}")(job)


for job_name in ABOUT:
    activity.add_command(_command(job_name))
