"""Builds the plan of a scenario for one variant: names every process, fills every default."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from watchkeeper.model.actor.program import Program
from watchkeeper.model.group.variants import VARIANTS
from watchkeeper.model.judgement.judge import PROPERTIES
from watchkeeper.model.mutants.by_name import variant_named
from watchkeeper.model.plan.faults import VERBS
from watchkeeper.model.plan.plan import ClusterPlan, GroupPlan, Plan, Sometimes
from watchkeeper.model.properties.group_offsets import GROUP_OFFSETS
from watchkeeper.model.properties.messages import message_claims
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.scenarios.plan.clusters import cluster
from watchkeeper.scenarios.plan.context import Context
from watchkeeper.scenarios.plan.groups import MOST_CONSUMERS, group
from watchkeeper.scenarios.plan.messages import producers
from watchkeeper.scenarios.plan.mirrors import expand
from watchkeeper.scenarios.plan.names import Names
from watchkeeper.scenarios.plan.processes import on_one_host, processes
from watchkeeper.scenarios.plan.timeline import actions
from watchkeeper.scenarios.schema.schema import MOST_PARTITIONS, ScenarioModel, SometimesModel
from watchkeeper.scenarios.text.document import Document, Path
from watchkeeper.scenarios.text.errors import ScenarioError, expected

RESERVED = frozenset({"broker", "zookeeper", "administrator"})


def build(
    document: Document, scenario: ScenarioModel, variant: str, program: Program | None
) -> Plan:
    """Build the plan of a scenario for a variant; ScenarioError lists every conflict."""
    chosen = variant_named(variant)
    if chosen is None:
        problem = document.problem(("variant",), expected(variant, "a variant", VARIANTS))
        raise ScenarioError(document.name, [problem])
    if not scenario.clusters:
        message = "is empty; expected at least one cluster"
        raise ScenarioError(document.name, [document.problem(("clusters",), message)])
    context = Context(document, scenario, chosen)
    expand(context)
    clusters = tuple(cluster(context, name) for name in scenario.clusters)
    context.addresses = {cluster.name: _addresses(cluster) for cluster in clusters}
    groups = tuple(group(context, name, program) for name in context.scenario.groups)
    senders = producers(context)
    shared = processes(context, clusters, groups, senders)
    groups = on_one_host(context, clusters, groups, shared)
    names = Names(clusters, groups, senders, shared, scenario.timeline)
    _check_sizes(context, names, groups)
    _check_names(context, clusters, groups)
    _check_offsets(context, groups)
    _check_words(context, names)
    context.stop_if_wrong()
    return Plan(
        name=scenario.name,
        about=scenario.about,
        variant=variant,
        clusters=clusters,
        groups=groups,
        timeline=actions(document, names, clusters, groups),
        settle_us=scenario.settle,
        producers=senders,
        processes=shared,
        sometimes=tuple(_looked_for(scenario.sometimes, variant)),
        never=tuple(_looked_for(scenario.never, variant)),
        strict_ownership=scenario.strict,
        progress_within_us=scenario.progress_within,
        work_factor=scenario.work_factor,
    )


def _addresses(cluster: ClusterPlan) -> str:
    return ",".join(
        f"{broker.broker_id}:{broker.host}:{broker.port}" for broker in cluster.brokers
    )


def _looked_for(models: Iterable[SometimesModel], variant: str) -> Iterator[Sometimes]:
    for model in models:
        if model.variants is None or variant in model.variants:
            yield _sometimes(model)


def _sometimes(model: SometimesModel) -> Sometimes:
    return Sometimes(
        model.event,
        model.node or "",
        model.partition or "",
        model.after or "",
        model.before or "",
        tuple(model.detail.items()),
    )


# --- what only the whole can show ------------------------------------------------------


def _check_sizes(context: Context, names: Names, groups: tuple[GroupPlan, ...]) -> None:
    """Refuse sizes that no machine can run."""
    partitions = names.partitions()
    if partitions > MOST_PARTITIONS:
        message = f"there are {partitions} partitions in all; expected at most {MOST_PARTITIONS}"
        context.problem(("clusters",), message)
    consumers = sum(len(group.consumers) for group in groups)
    if consumers > MOST_CONSUMERS:
        message = f"there are {consumers} consumers in all; expected at most {MOST_CONSUMERS}"
        context.problem(("groups",), message)


def _check_names(
    context: Context, clusters: tuple[ClusterPlan, ...], groups: tuple[GroupPlan, ...]
) -> None:
    """Each process has its own name, and none has the name of a reserved role."""
    for plan in clusters:
        seen: set[str] = set()
        for at, broker in enumerate(plan.brokers):
            if broker.node in seen:
                path: Path = ("clusters", plan.name, "brokers", at)
                message = f"{broker.node} is there already; give one of the two a `name`"
                context.problem(path, message)
            seen.add(broker.node)
    for name in RESERVED.intersection(member.name for member in groups):
        context.problem(("groups", name), "is a reserved word; choose another name")
    for name in RESERVED.intersection(context.scenario.producers):
        context.problem(("producers", name), "is a reserved word; choose another name")
    for name in RESERVED.intersection(context.scenario.processes):
        context.problem(("processes", name), "is a reserved word; choose another name")
    for name in {
        member.name: None for member in groups if member.name in context.scenario.producers
    }:
        context.problem(("producers", name), "is the name of a group; choose another name")


def _check_offsets(context: Context, groups: tuple[GroupPlan, ...]) -> None:
    """Refuse settings of an offsets topic that no group uses."""
    used = {
        group.cluster
        for group in groups
        for consumer in group.consumers
        if consumer.settings.offsets_storage == "kafka"
    }
    for name, model in context.scenario.clusters.items():
        replication = model.replication
        if replication is None or name in used:
            continue
        if "offsets_topic" in replication.model_fields_set:
            message = "has no effect: no group of the cluster has `offsets.storage: kafka`"
            context.problem(("clusters", name, "replication", "offsets_topic"), message)


def _check_words(context: Context, names: Names) -> None:
    """Check that every word in `sometimes`, `never` and `expect` exists."""
    nodes = names.nodes
    for field in ("sometimes", "never"):
        for at, entry in enumerate(getattr(context.scenario, field)):
            _check_sometimes(context, (field, at), entry, nodes)
    claims = _claims(context, names)
    for name, expectation in context.scenario.expect.items():
        context.variant_named(name, ("expect", name))
        for key in () if isinstance(expectation, str) else ("violated", "may"):
            for at, message in enumerate(getattr(expectation, key)):
                if message not in claims:
                    path: Path = ("expect", name, key, at)
                    context.problem(path, expected(message, "a property", claims))


def _claims(context: Context, names: Names) -> list[str]:
    """The names of the properties that are judged in this scenario."""
    claims = [claim.name for claim in PROPERTIES]
    if any(cluster.controller is not None for cluster in names.clusters):
        from watchkeeper.model.properties.control_plane.judges import control_plane_claims

        claims += control_plane_claims(names.clusters)
    claims += message_claims(list(context.scenario.groups))
    return claims + [claim.name for claim in GROUP_OFFSETS]


def _check_sometimes(
    context: Context, path: Path, sometimes: SometimesModel, nodes: list[str]
) -> None:
    for at, name in enumerate(sometimes.variants or ()):
        context.variant_named(name, (*path, "variants", at))
    if sometimes.event not in set(EventKind):
        context.problem(
            (*path, "event"), expected(sometimes.event, "a kind of event", map(str, EventKind))
        )
    if sometimes.node is not None and sometimes.node not in nodes:
        message = expected(sometimes.node, "a node of this scenario", nodes)
        context.problem((*path, "node"), message)
    for word, verb in (("after", sometimes.after), ("before", sometimes.before)):
        if verb is not None and verb not in VERBS:
            context.problem((*path, word), expected(verb, "a verb", VERBS))
