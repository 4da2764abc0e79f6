"""The commands `activity`: events of a site, and the jobs that make answers of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.text import Text

from model.log.codecs import Codec
from pipeline.activity.generator import generated
from pipeline.activity.settings import Rules, Settings, settings_of
from pipeline.bounded import within
from pipeline.kafkalog.options import options_of
from pipeline.kafkalog.source import register
from pipeline.problems import PipelineProblem
from pipeline.session import Wanted, session
from pipeline.sweeps.choosing import cores
from real.java import find_java
from real.problems import EnvironmentProblem
from watchkeeper.activity_producing import into_logs, settings_for, to_brokers
from watchkeeper.endings import HOLDS, UNKNOWN, USAGE, Stop
from watchkeeper.interrupts import INTERRUPTED, INTERRUPTS
from watchkeeper.printing import plain_table, show_table

SCRATCH = "_spark"
LONGEST_S = 7 * 24 * 3600.0
"""How long a job may take."""


def settings_in(file: Path | None) -> Settings:
    """The settings in a file, or those that come along; Stop says what is wrong with it."""
    if file is None:
        return Settings()
    try:
        return settings_of(yaml.safe_load(file.read_text(encoding="utf-8")), str(file))
    except PipelineProblem as problem:
        raise Stop(USAGE, str(problem)) from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        said = " ".join(str(error).split())
        raise Stop(
            USAGE, f"{file} cannot be read: {said}; expected YAML with activity and rules"
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
    """Generate events and send them; how many went to each topic."""
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
    """Print what went to each topic."""
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
    def said_of_lost(self) -> str:
        """What is said of that."""
        names = ", ".join(f"{count} of {name}" for name, count in self.lost.items())
        return (
            f"some groups of events came behind the watermark, and count in no window ({names}); "
            "logs were far behind one another: make the tables anew in another folder, or set "
            "rules.late_s higher"
        )

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {"out": str(self.out), "tables": self.rows, "behind_the_watermark": self.lost}


def run(
    name: str, logs: Path, out: Path, settings: Settings, *, is_stream: bool, master: str | None
) -> Ran:
    """Run a job by its name; Stop says what keeps it from being done."""
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
        raise Stop(
            USAGE, f"{out} cannot be written: {error.strerror or error}; name another folder"
        ) from None
    except KeyboardInterrupt:
        raise Stop(
            UNKNOWN, f"{INTERRUPTED}: the tables in {out} are whole; the same command goes on"
        ) from None


def _run(
    name: str, logs: Path, out: Path, rules: Rules, wanted: Wanted, *, is_stream: bool
) -> Ran:
    from pipeline.activity.folder import held
    from pipeline.activity.jobs import JOBS
    from pipeline.activity.running import check_job, run_job

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
        {one.name: one.rows for one in written},
        {one.name: one.lost for one in written if one.lost},
    )


def show(ran: Ran, to: Console) -> None:
    """Print the tables of a job."""
    table = plain_table("table", "rows", "in")
    for name, rows in ran.rows.items():
        table.add_row(Text(name, "bold"), f"{rows:,}", str(ran.out / name))
    show_table(table, to)
