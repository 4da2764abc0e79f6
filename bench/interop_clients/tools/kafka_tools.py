"""Kafka's tools on the controller of this project, with its live brokers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from bench.interop_clients.broker import run_command
from bench.interop_clients.jvm import run_class
from bench.interop_clients.kafka_cluster import WITHIN_S, connected
from bench.interop_clients.kafka_jars import java_command
from bench.interop_clients.outcome import Action, Rows, expect
from bench.interop_clients.tools.own_cluster import OwnCluster
from bench.interop_clients.tools.topic_state import (
    MOVES,
    Topic,
    described,
    moves_of,
    read_topic,
    until_gone,
    until_preferred,
    until_whole,
)

from watchkeeper.real.zookeepers.implementation import apache_if_found, ensemble_of

CLIENT = "Kafka's tools on ours"
VARIANTS = ("hardened", "kafka_08")
TOPIC = "made"
PREFERRED = "kafka.admin.PreferredReplicaLeaderElectionCommand"
REASSIGN = "kafka.admin.ReassignPartitionsCommand"


class KafkaTools(Rows):
    """Kafka's tools on clusters of this project, one for each variant of the controller."""

    client = CLIENT

    def __init__(self, folder: Path, jars: Path) -> None:
        self._folder = folder / "kafka-tools"
        self._jars = jars
        self._ensemble = ensemble_of(apache_if_found())
        self._clusters: list[OwnCluster] = []

    def actions(self) -> Iterator[Action]:
        """What is done, in this order."""
        yield self.first_action("a ZooKeeper starts", self._started)
        for variant in VARIANTS:
            cluster = OwnCluster(self._folder / variant, self._ensemble, variant)
            self._clusters.append(cluster)
            for name, run in (
                ("three brokers and a controller", self._elected_first),
                ("TopicCommand: create, describe", self._created),
                ("TopicCommand: more partitions", self._altered),
                ("TopicCommand: settings", self._configured),
                ("ReassignPartitionsCommand: to other brokers", self._moved),
                ("PreferredReplicaLeaderElectionCommand", self._elected),
                ("TopicCommand: delete", self._deleted),
            ):
                yield self.action(f"{variant}: {name}", run, cluster)

    def end(self) -> None:
        """End every process."""
        for cluster in self._clusters:
            cluster.end()
        self._ensemble.stop()

    # --- actions -----------------------------------------------------------------------

    def _started(self) -> str:
        java_command(self._jars)
        self._folder.mkdir()
        self._ensemble.start()
        return f"the one in {apache_if_found().value.capitalize()}"

    def _elected_first(self, cluster: OwnCluster) -> str:
        cluster.start()
        return "a topic with three replicas has a leader"

    def _created(self, cluster: OwnCluster) -> str:
        numbers = ("--partitions", "4", "--replication-factor", "2")
        self._topics(cluster, "--create", *numbers)
        found = self._whole(cluster, 4)
        expect(self._described(cluster), found, "what --describe prints")
        return "4 partitions, each with a leader and two in sync"

    def _altered(self, cluster: OwnCluster) -> str:
        self._topics(cluster, "--alter", "--partitions", "6")
        found = self._whole(cluster, 6)
        expect(self._described(cluster), found, "what --describe prints")
        return "6 partitions"

    def _configured(self, cluster: OwnCluster) -> str:
        """`watchkeeper config` shows what Kafka's tool has set."""
        self._topics(cluster, "--alter", "--config", "retention.ms=3600000")
        expect(_overrides(cluster), {"retention.ms": "3600000"}, "settings")
        self._topics(cluster, "--alter", "--delete-config", "retention.ms")
        expect(_overrides(cluster), {}, "settings after --delete-config")
        return "set, and removed again"

    def _moved(self, cluster: OwnCluster) -> str:
        """Each partition moves to the two brokers after its first one."""
        before = self._read(cluster)
        wanted = {
            number: [(one.replicas[0] + 1) % 3, (one.replicas[0] + 2) % 3]
            for number, one in before.items()
        }
        self._reassign(cluster, wanted)
        after = self._whole(cluster, len(before))
        found = {number: list(one.replicas) for number, one in after.items()}
        expect(found, wanted, "replicas")
        return f"{len(wanted)} partitions moved; --verify says so of each"

    def _elected(self, cluster: OwnCluster) -> str:
        """The order of replicas is turned round, which no leader hears of; then the election."""
        before = self._read(cluster)
        turned = {number: [*reversed(one.replicas)] for number, one in before.items()}
        self._reassign(cluster, turned)
        between = self._whole(cluster, len(before))
        behind = [number for number, one in between.items() if not one.is_preferred]
        expect(behind != [], True, "a partition is led by a replica that is not preferred")
        run_class(self._jars, PREFERRED, "--zookeeper", cluster.zookeeper)
        with connected(cluster.zookeeper) as client:
            until_preferred(client, TOPIC)
            until_gone(client, "/admin/preferred_replica_election")
        return f"{len(behind)} partitions got another leader"

    def _deleted(self, cluster: OwnCluster) -> str:
        self._topics(cluster, "--delete")
        with connected(cluster.zookeeper) as client:
            for path in (
                f"/brokers/topics/{TOPIC}",
                f"/config/topics/{TOPIC}",
                f"/admin/delete_topics/{TOPIC}",
            ):
                until_gone(client, path)
        listed = self._topic_command(cluster, "--list").split()
        expect(listed, ["first"], "topics that are listed")
        return "its znodes are gone"

    # --- what they share ---------------------------------------------------------------

    def _topics(self, cluster: OwnCluster, *options: str) -> None:
        self._topic_command(cluster, "--topic", TOPIC, *options)

    def _described(self, cluster: OwnCluster) -> Topic:
        return described(self._topic_command(cluster, "--describe"))[TOPIC]

    def _topic_command(self, cluster: OwnCluster, *options: str) -> str:
        where = ("--zookeeper", cluster.zookeeper)
        return run_class(self._jars, "kafka.admin.TopicCommand", *where, *options)

    def _read(self, cluster: OwnCluster) -> Topic:
        with connected(cluster.zookeeper) as client:
            return read_topic(client, TOPIC)

    def _whole(self, cluster: OwnCluster, partitions: int) -> Topic:
        with connected(cluster.zookeeper) as client:
            return until_whole(client, TOPIC, partitions)

    def _reassign(self, cluster: OwnCluster, wanted: dict[int, list[int]]) -> None:
        """Request a reassignment, and wait until the tool says that all of it is complete."""
        path = self._folder / "moves.json"
        path.write_text(moves_of(TOPIC, wanted))
        options = ("--zookeeper", cluster.zookeeper, "--reassignment-json-file", str(path))
        run_class(self._jars, REASSIGN, *options, "--execute")
        with connected(cluster.zookeeper) as client:
            until_gone(client, MOVES)
        said = run_class(self._jars, REASSIGN, *options, "--verify")
        expect(completed(said), [*wanted], "partitions whose move is complete")


def completed(said: str) -> list[int]:
    """The partitions that `ReassignPartitionsCommand --verify` calls complete."""
    pattern = r"^Reassignment of partition \[[^,\]]+,(\d+)\] completed successfully$"
    return sorted(int(each) for each in re.findall(pattern, said, re.MULTILINE))


def _overrides(cluster: OwnCluster) -> object:
    done = run_command("config", cluster.zookeeper, TOPIC, "--json", within_s=WITHIN_S)
    return json.loads(done.stdout)["overrides"]
