"""Makes a plan of a scenario, for one variant: names every process, settles every default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from model.filters import BadFilter, compiled, normalise
from model.plan import (
    BrokerPlan,
    ClusterPlan,
    ConsumerPlan,
    GroupPlan,
    Happening,
    Plan,
    TopicPlan,
    ZooKeeperPlan,
)
from model.program import Program
from model.registry import Layout, Subscription
from model.settings import consumer_settings
from model.trace import KINDS
from model.variants import VARIANTS, Variant
from scenarios.problems import Problem, ScenarioError, expected, nearest
from scenarios.reading import Document, Path
from scenarios.schema import ScenarioModel
from scenarios.timeline import actions

MOST_CONSUMERS = 5_000
MOST_BROKERS = 1_000
MOST_PARTITIONS = 200_000
RESERVED = frozenset({"broker", "zookeeper", "administrator"})


class Builder:
    """Makes the plan, and gathers the problems on the way."""

    def __init__(self, document: Document, scenario: ScenarioModel, variant: str) -> None:
        self.document = document
        self.scenario = scenario
        self.problems: list[Problem] = []
        self.variant = self.variant_named(variant, ("variant",))

    def problem(self, path: Path, said: str) -> None:
        """There is one more problem."""
        self.problems.append(self.document.problem(path, said))

    def stop_if_wrong(self) -> None:
        """Give up if there have been problems."""
        if self.problems:
            raise ScenarioError(self.document.name, self.problems)

    def variant_named(self, name: str | None, path: Path) -> Variant:
        """The variant of this name, or the run's."""
        if name is None:
            return self.variant
        if name not in VARIANTS:
            self.problem(path, expected(name, "a variant", VARIANTS))
            return next(iter(VARIANTS.values()))
        return VARIANTS[name]

    def plan(self, program: Program | None) -> Plan:
        """The whole plan."""
        clusters = tuple(self.cluster(name) for name in self.scenario.clusters)
        if not clusters:
            self.problem(("clusters",), "is empty; expected at least one cluster")
        groups = tuple(self.group(name, program) for name in self.scenario.groups)
        self.check_sizes(clusters, groups)
        self.check_names(clusters, groups)
        self.stop_if_wrong()
        timeline = actions(self.document, self.scenario, clusters, groups)
        self.check_words()
        self.stop_if_wrong()
        return Plan(
            name=self.scenario.name,
            about=self.scenario.about,
            variant=self.variant.name,
            clusters=clusters,
            groups=groups,
            timeline=timeline,
            settle_us=self.scenario.settle,
            sometimes=tuple(map(_happening, self.scenario.sometimes)),
            never=tuple(map(_happening, self.scenario.never)),
            strict_ownership=self.scenario.strict,
            progress_within_us=self.scenario.progress_within,
            work_factor=self.scenario.work_factor,
        )

    # --- clusters ----------------------------------------------------------------------

    def cluster(self, name: str) -> ClusterPlan:
        """One cluster."""
        model = self.scenario.clusters[name]
        path: Path = ("clusters", name)
        variant = self.variant_named(model.variant, (*path, "variant"))
        layout = self.layout(name, variant)
        brokers = self.brokers(name)
        ids = [broker.broker_id for broker in brokers]
        zookeeper = model.zookeeper
        return ClusterPlan(
            name=name,
            zookeeper=ZooKeeperPlan(
                zookeeper.servers, zookeeper.tick, zookeeper.lists_ephemerals, zookeeper.profile
            ),
            layout=layout,
            variant=variant,
            brokers=brokers,
            topics=tuple(
                self.topic((*path, "topics", topic), topic, one, sorted(set(ids)))
                for topic, one in model.topics.items()
            ),
            session_timeout_ms=max(model.session_timeout // 1000, 1),
        )

    def layout(self, name: str, brokers: Variant) -> Layout:
        """The layout that is given, or the first that everybody in the cluster allows."""
        model = self.scenario.clusters[name]
        everybody = [(brokers, ("clusters", name)), *self.variants_in(name)]
        if model.layout is not None:
            for variant, _ in everybody:
                if model.layout not in variant.layouts:
                    allowed = " and ".join(variant.layouts)
                    self.problem(
                        ("clusters", name, "layout"),
                        f"{variant.name} does not run on the {model.layout} layout (it allows "
                        f"{allowed}); choose another variant or another layout",
                    )
            return model.layout
        for layout in self.variant.layouts:
            if all(layout in variant.layouts for variant, _ in everybody):
                return layout
        names = sorted({variant.name for variant, _ in everybody})
        self.problem(("clusters", name), f"no layout is allowed by all of {', '.join(names)}")
        return brokers.layout

    def variants_in(self, cluster: str) -> list[tuple[Variant, Path]]:
        """Every variant that a consumer of a cluster runs."""
        found: list[tuple[Variant, Path]] = []
        for name, group in self.scenario.groups.items():
            if self.cluster_of(name) != cluster:
                continue
            path: Path = ("groups", name)
            found.append((self.variant_named(group.variant, (*path, "variant")), path))
            if isinstance(group.consumers, list):
                found.extend(
                    (self.variant_named(one.variant or group.variant, path), path)
                    for one in group.consumers
                )
        return found

    def brokers(self, cluster: str) -> tuple[BrokerPlan, ...]:
        """The brokers of a cluster: numbered from 0, or as listed."""
        model = self.scenario.clusters[cluster]
        prefix = self.prefix(cluster)
        if isinstance(model.brokers, int):
            if not 0 <= model.brokers <= MOST_BROKERS:
                path: Path = ("clusters", cluster, "brokers")
                self.problem(
                    path, f"{model.brokers} is not a number of brokers, 0 to {MOST_BROKERS}"
                )
                return ()
            return tuple(
                BrokerPlan(f"{prefix}broker/{one}", one, f"{cluster}-b{one}.example", 9092)
                for one in range(model.brokers)
            )
        return tuple(
            BrokerPlan(
                f"{prefix}broker/{one.name or one.id}",
                one.id,
                one.host or f"{cluster}-{one.name or f'b{one.id}'}.example",
                one.port,
                None if one.starts == "never" else one.starts,
            )
            for one in model.brokers
        )

    def prefix(self, cluster: str) -> str:
        """What stands before the names of a cluster's processes, if there are several."""
        return f"{cluster}:" if len(self.scenario.clusters) > 1 else ""

    def topic(self, path: Path, name: str, model: Any, brokers: list[int]) -> TopicPlan:
        """One topic, dealt out to the brokers in turn."""
        if (model.partitions is None) == (model.partitions_per_broker is None):
            self.problem(path, "needs either `partitions` or `partitions_per_broker`")
            return TopicPlan(name, (), ())
        if model.replicas > max(len(brokers), 1):
            self.problem((*path, "replicas"), f"{model.replicas} is more than there are brokers")
        if model.partitions_per_broker is not None:
            counts = dict.fromkeys(brokers, model.partitions_per_broker)
        else:
            counts = {
                broker: model.partitions // len(brokers)
                + (1 if at < model.partitions % len(brokers) else 0)
                for at, broker in enumerate(brokers)
            }
        total = sum(counts.values())
        homes = tuple(
            (
                index,
                tuple(brokers[(index + copy) % len(brokers)] for copy in range(model.replicas)),
            )
            for index in range(total)
        )
        return TopicPlan(name, tuple(counts.items()), homes)

    # --- groups ------------------------------------------------------------------------

    def cluster_of(self, group: str) -> str:
        """The cluster of a group: the one it names, or the only one."""
        model = self.scenario.groups[group]
        clusters = list(self.scenario.clusters)
        if model.cluster is None:
            if len(clusters) > 1:
                said = f"needs `cluster`, since there are several: {', '.join(clusters)}"
                self.problem(("groups", group), said)
            return clusters[0] if clusters else ""
        if model.cluster not in clusters:
            path: Path = ("groups", group, "cluster")
            self.problem(path, expected(model.cluster, "a cluster", clusters))
            return clusters[0] if clusters else ""
        return model.cluster

    def group(self, name: str, program: Program | None) -> GroupPlan:
        """One group."""
        model = self.scenario.groups[name]
        cluster = self.cluster_of(name)
        listed: list[Any]
        if isinstance(model.consumers, int):
            if not 0 <= model.consumers <= MOST_CONSUMERS:
                path: Path = ("groups", name, "consumers")
                said = f"{model.consumers} is not a number of consumers, 0 to {MOST_CONSUMERS}"
                self.problem(path, said)
            listed = [None] * max(min(model.consumers, MOST_CONSUMERS), 0)
        else:
            listed = list(model.consumers)
        digits = len(str(max(len(listed) - 1, 0)))
        consumers = tuple(
            self.consumer(name, at, one, digits, program) for at, one in enumerate(listed)
        )
        if model.fetch_every <= 0:
            self.problem(("groups", name, "fetch_every"), "must be longer than nothing")
        return GroupPlan(name, cluster, consumers, model.fetch_every)

    def consumer(
        self, group: str, at: int, model: Any, digits: int, program: Program | None
    ) -> ConsumerPlan:
        """One consumer: what is said of it, and of its group where nothing is."""
        shared = self.scenario.groups[group]
        path: Path = ("groups", group)
        own: Path = (*path, "consumers", at) if model is not None else path
        given = model.variant if model is not None and model.variant else shared.variant
        variant = self.variant_named(given, (*own, "variant"))
        numbered = "" if shared.ids == "drawn" else f"c{at:0{digits}d}"
        starts: int | None = shared.starts + at * shared.apart
        if model is not None and model.starts is not None:
            starts = None if model.starts == "never" else model.starts
        config = {**shared.config, **(model.config if model is not None else {})}
        return ConsumerPlan(
            node=f"{group}/{at}",
            host=(model.host if model is not None else None)
            or f"{group}-{at:0{digits}d}.example",
            configured_id=(model.id if model is not None else None) or numbered,
            subscription=self.subscription(path, own, shared, model),
            variant=variant,
            settings=self.settings(own, variant, config),
            starts_us=starts,
            program=program,
        )

    def settings(self, path: Path, variant: Variant, config: Mapping[str, Any]) -> Any:
        """A consumer's settings."""
        for key, value in config.items():
            try:
                consumer_settings(variant.release, {key: value})
            except ValueError as error:
                place: Path = (*path, "config", key)
                if place not in self.document.lines:
                    place = (*path[:2], "config", key)
                self.problem(place, str(error))
                return consumer_settings(variant.release)
        return consumer_settings(variant.release, config)

    def subscription(self, path: Path, own: Path, shared: Any, model: Any) -> Subscription:
        """What a consumer wants."""
        if model is not None and (model.streams is not None or model.filter is not None):
            place, source = own, model
        else:
            place, source = path, shared
        if (source.streams is None) == (source.filter is None):
            self.problem(place, "needs either `streams` or `filter`")
            return Subscription()
        if source.filter is not None:
            return self.filter((*place, "filter"), source.filter)
        for topic, count in source.streams.items():
            if not 1 <= count <= 1000:
                said = f"{count} is not a number of streams, 1 to 1000"
                self.problem((*place, "streams", topic), said)
            self.check_topic((*place, "streams", topic), topic)
        return Subscription(tuple(source.streams.items()))

    def check_topic(self, path: Path, topic: str) -> None:
        """A topic has to be there, or to come by the timeline."""
        known = {name for cluster in self.scenario.clusters.values() for name in cluster.topics}
        known.update(
            entry.create_topic  # type: ignore[attr-defined]
            for entry in self.scenario.timeline
            if entry.create_topic is not None  # type: ignore[attr-defined]
        )
        if topic not in known:
            self.problem(path, f"there is no such topic{nearest(topic, sorted(known))}")

    def filter(self, path: Path, model: Any) -> Subscription:
        """A topic filter."""
        if (model.white_list is None) == (model.black_list is None):
            self.problem(path, "needs either `white_list` or `black_list`")
            return Subscription()
        expression = model.white_list or model.black_list
        try:
            compiled(normalise(expression))
        except BadFilter as error:
            self.problem(path, str(error))
        pattern: Any = "white_list" if model.white_list is not None else "black_list"
        return Subscription((), pattern, expression, model.streams)

    # --- the whole ---------------------------------------------------------------------

    def check_sizes(
        self, clusters: tuple[ClusterPlan, ...], groups: tuple[GroupPlan, ...]
    ) -> None:
        """Refuse what no machine could run."""
        partitions = sum(len(topic.replicas) for cluster in clusters for topic in cluster.topics)
        if partitions > MOST_PARTITIONS:
            said = f"there are {partitions} partitions in all; at most {MOST_PARTITIONS}"
            self.problem(("clusters",), said)
        consumers = sum(len(group.consumers) for group in groups)
        if consumers > MOST_CONSUMERS:
            said = f"there are {consumers} consumers in all; at most {MOST_CONSUMERS}"
            self.problem(("groups",), said)

    def check_names(
        self, clusters: tuple[ClusterPlan, ...], groups: tuple[GroupPlan, ...]
    ) -> None:
        """No two processes of one name, and no group named as the brokers are."""
        for cluster in clusters:
            seen: set[str] = set()
            for at, broker in enumerate(cluster.brokers):
                if broker.node in seen:
                    path: Path = ("clusters", cluster.name, "brokers", at)
                    said = f"{broker.node} is there already; give one of the two a `name`"
                    self.problem(path, said)
                seen.add(broker.node)
        for group in groups:
            if group.name in RESERVED:
                self.problem(("groups", group.name), "is a reserved word; choose another name")

    def check_words(self) -> None:
        """The words in `sometimes` and `expect` have to exist."""
        from model.faults import VERBS
        from model.properties import PROPERTIES

        for field in ("sometimes", "never"):
            for at, one in enumerate(getattr(self.scenario, field)):
                path: Path = (field, at)
                if one.event not in KINDS:
                    self.problem((*path, "event"), expected(one.event, "a kind of event", KINDS))
                for word in ("after", "before"):
                    verb = getattr(one, word)
                    if verb is not None and verb not in VERBS:
                        self.problem((*path, word), expected(verb, "a verb", VERBS))
        names = [claim.name for claim in PROPERTIES]
        for name, expectation in self.scenario.expect.items():
            self.variant_named(name, ("expect", name))
            if isinstance(expectation, str):
                continue
            for key in ("violated", "may"):
                for at, said in enumerate(getattr(expectation, key)):
                    if said not in names:
                        place: Path = ("expect", name, key, at)
                        self.problem(place, expected(said, "a property", names))


def _happening(model: Any) -> Happening:
    return Happening(
        model.event,
        model.node or "",
        model.after or "",
        model.before or "",
        tuple(model.detail.items()),
    )
