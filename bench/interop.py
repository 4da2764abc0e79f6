"""This project beside programs of Kafka 0.8: what works, row by row.

    python bench/interop.py [--only kcat,kafka-python] [--jars FOLDER] [--folder DIR] [--json]

Starts a ZooKeeper and `watchkeeper broker --protocol 0.8`, and lets these clients loose on it:
kafka-python, kcat, and Kafka 0.8.2.2's own producers, consumers and tools, whose jars it fetches
from Maven Central once. Then this project's own commands read what they wrote. The other way
round, Kafka's own brokers are read by `load --brokers` and by Spark (`--only kafka-brokers`).

On Kafka's ZooKeeper and brokers, groups of `--only` do without a broker of this project:
`mixed-groups` are groups with members by Kafka and by this project, through kills, pauses and
changes; `mixed-cluster` is one cluster of a broker of Kafka and two of this project.

What is missing on this machine is skipped, with the reason. It ends with 1 if a row failed.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.interop_clients import outcome
from bench.interop_clients.broker import place
from bench.interop_clients.groups.mixed import MixedGroups
from bench.interop_clients.groups.offsets import GroupOffsets
from bench.interop_clients.jvm import Jvm
from bench.interop_clients.kafka_brokers import KafkaBrokers
from bench.interop_clients.kafka_jars import default_folder
from bench.interop_clients.kafka_python import KafkaPython
from bench.interop_clients.kcat import Kcat
from bench.interop_clients.mixed_cluster.rows import MixedCluster
from bench.interop_clients.outcome import Outcome, Rows
from bench.interop_clients.own import Own
from bench.interop_clients.tools.kafka_tools import KafkaTools
from bench.interop_clients.tools.own_tools import OwnTools
from bench.support.report import Report, number, parser_of

CLIENTS = ("kafka-python", "kcat", "jvm", "kafka-brokers")
ELSEWHERE: dict[str, tuple[Callable[[Path, Path], Rows], ...]] = {
    "mixed-groups": (MixedGroups,),
    "mixed-cluster": (MixedCluster,),
    "offsets": (GroupOffsets,),
    "tools": (KafkaTools, OwnTools),
}
"""What does without a broker of this project."""
ALL = (*CLIENTS, *ELSEWHERE)


def outcomes(folder: Path, jars: Path, only: Sequence[str]) -> Iterator[Outcome]:
    """Run every action of the chosen clients, and of this project."""
    if not only or {*only} & {*CLIENTS}:
        yield from _on_own_broker(folder, jars, [name for name in CLIENTS if name in only])
    for kind in chain.from_iterable(ELSEWHERE.get(name, ()) for name in only):
        rows = kind(folder, jars)
        with rows.ending():
            yield from map(outcome.run, rows.actions())


def _on_own_broker(folder: Path, jars: Path, only: Sequence[str]) -> Iterator[Outcome]:
    with place(folder) as broker:
        own, jvm = Own(broker), Jvm(broker, jars)
        kafka = KafkaBrokers(broker, jars)
        clients = {
            "kafka-python": KafkaPython(broker).actions,
            "kcat": Kcat(broker).actions,
            "jvm": jvm.actions,
            "kafka-brokers": kafka.actions,
        }
        with kafka.ending():
            for name in only:
                yield from map(outcome.run, clients[name]())
        yield from map(outcome.run, own.actions())
        yield from map(outcome.run, own.at_rest())
        if "jvm" in only:
            yield from map(outcome.run, jvm.at_rest())


def _names(only: str) -> tuple[str, ...]:
    """The chosen clients; none is none."""
    names = tuple(filter(None, only.split(",")))
    if unknown := set(names) - {*ALL}:
        raise SystemExit(f"--only {','.join(unknown)}: expected some of {', '.join(ALL)}")
    return names


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print; return 1 if a row failed."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--only", default=",".join(ALL), help="these clients (all)")
    parser.add_argument("--jars", type=Path, default=default_folder(), help="Kafka's jars")
    parser.add_argument("--folder", help="where the broker writes")
    options = parser.parse_args(arguments)
    report = Report("Interoperation with Kafka 0.8", ("client", "action", "", "what", "s"))
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        found = list(outcomes(Path(folder), options.jars, _names(options.only)))
    for each in found:
        report.rows.append(
            [each.client, each.action, each.word, each.detail, number(each.took_s)]
        )
    words = Counter(each.word for each in found)
    report.data["rows"] = [each._asdict() for each in found]
    report.notes.append(", ".join(f"{count} {word}" for word, count in sorted(words.items())))
    report.show(as_json=options.json)
    return 1 if words["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
