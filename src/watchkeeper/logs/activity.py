"""The commands `activity`: events of a site, and the jobs that make answers of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.text import Text

from watchkeeper.api.tables import plain_table, show_table
from watchkeeper.console.exit import HOLDS, UNKNOWN, USAGE, Stop, cannot_write
from watchkeeper.console.signals import INTERRUPTED, INTERRUPTS
from watchkeeper.logs.activity_produce import into_logs, settings_for, to_brokers
from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.pipeline.activity.generator import generated
from watchkeeper.pipeline.activity.settings import Rules, Settings, settings_of
from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.kafkalog.options import options_of
from watchkeeper.pipeline.kafkalog.source import register
from watchkeeper.pipeline.session import Wanted, session
from watchkeeper.pipeline.sweeps.runner_choice import cores
from watchkeeper.pipeline.timeouts import within
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.zookeeper.java import find_java

SCRATCH = "_spark"
LONGEST_S = 7 * 24 * 3600.0
"""The longest duration of a job."""


def settings_in(file: Path | None) -> Settings:
    """Return the settings in a file, or the default; raise Stop for an invalid file."""
    if file is None:
        return Settings()
    try:
        return settings_of(yaml.safe_load(file.read_text(encoding="utf-8")), str(file))
    except PipelineProblem as problem:
        raise Stop(USAGE, str(problem)) from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        message = " ".join(str(error).split())
        raise Stop(
            USAGE, f"{file} cannot be read: {message}; expected YAML with activity and rules"
        ) from None


# --- events ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Target:
    """Where events go: to brokers, or into a folder of logs."""

    brokers: str | None
    logs: Path | None
    partitions: int
    compression: str

    def __post_init__(self) -> None:
        if (self.brokers is None) == (self.logs is None):
            raise Stop(USAGE, "expected either --brokers HOST:PORT or --logs DIR")


def produce(target: Target, settings: Settings, events: int, seed: int) -> Counter[str]:
    """Generate events, send them, and return their number by topic."""
    INTERRUPTS.raise_from_now_on()
    codec = Codec[target.compression.upper()]
    made = generated(settings.activity, seed, events)
    try:
        if target.logs is not None:
            return into_logs(target.logs, made, partitions=target.partitions, codec=codec)
        assert target.brokers is not None, "one of the two is given"
        return to_brokers(settings_for(target.brokers, codec), made)
    except KeyboardInterrupt:
        raise Stop(
            UNKNOWN, f"{INTERRUPTED}: what was sent before is there; begin with empty logs"
        ) from None


def show_sent(sent: Counter[str], to: Console) -> None:
    """Print the number of events of each topic."""
    table = plain_table("topic", "events")
    for topic, count in sorted(sent.items()):
        table.add_row(Text(topic, "bold"), f"{count:,}")
    show_table(table, to)


# --- jobs ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ran:
    """A job that has come to its end: its tables, and where they are."""

    out: Path
    rows: dict[str, int]
    lost: dict[str, int]

    @property
    def exit_code(self) -> int:
        """2 if something came when its window was closed: then the tables do not say all."""
        return UNKNOWN if self.lost else HOLDS

    @property
    def lost_text(self) -> str:
        """A warning about events that count in no window."""
        names = ", ".join(f"{count} of {name}" for name, count in self.lost.items())
        return (
            f"some groups of events came behind the watermark, and count in no window ({names}); "
            "logs were far behind one another: make the tables anew in another folder, or set "
            "rules.late_s higher"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON."""
        return {"out": str(self.out), "tables": self.rows, "behind_the_watermark": self.lost}


def run(
    name: str, logs: Path, out: Path, settings: Settings, *, is_stream: bool, master: str | None
) -> Ran:
    """Run a job by its name; raise Stop if it cannot be done."""
    INTERRUPTS.raise_from_now_on()
    try:
        find_java()
        wanted = Wanted(
            master or f"local[{cores()}]", f"watchkeeper activity {name}", out / SCRATCH, "jvm"
        )
        return _run(name, logs, out, settings.rules, wanted, is_stream=is_stream)
    except (PipelineProblem, EnvironmentProblem) as problem:
        raise Stop(USAGE, str(problem)) from None
    except OSError as error:
        raise cannot_write(out, error, "name another folder") from None
    except KeyboardInterrupt:
        raise Stop(
            UNKNOWN, f"{INTERRUPTED}: the tables in {out} are whole; the same command goes on"
        ) from None


def _run(
    name: str, logs: Path, out: Path, rules: Rules, wanted: Wanted, *, is_stream: bool
) -> Ran:
    from watchkeeper.pipeline.activity.folder import held
    from watchkeeper.pipeline.activity.jobs import JOBS
    from watchkeeper.pipeline.activity.run_job import check_job, run_job

    job, folder, place = JOBS[name], str(logs.absolute()), out.absolute()
    for topic in job.reads:
        options_of({"path": folder, "topics": topic}).logs()
    with held(place, job) as lock:
        check_job(job, folder, place, rules, is_stream=is_stream)
        with session(replace(wanted, keeps_open=(lock,))) as spark:
            register(spark)
            written = within(
                LONGEST_S,
                lambda: run_job(spark, job, folder, place, rules, is_stream=is_stream),
                f"{name} took longer than {LONGEST_S / 86400:.0f} days; give it less at once",
            )
    return Ran(
        out,
        {table.name: table.rows for table in written},
        {table.name: table.lost for table in written if table.lost},
    )


def show(ran: Ran, to: Console) -> None:
    """Print the tables of a job."""
    table = plain_table("table", "rows", "in")
    for name, rows in ran.rows.items():
        table.add_row(Text(name, "bold"), f"{rows:,}", str(ran.out / name))
    show_table(table, to)
