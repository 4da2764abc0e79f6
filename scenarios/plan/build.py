"""Makes a plan of a scenario, for one variant: names every process, settles every default."""

from __future__ import annotations

from model.faults import VERBS
from model.messages import message_claims
from model.plan import ClusterPlan, GroupPlan, Happening, Plan
from model.program import Program
from model.properties import PROPERTIES
from model.trace import KINDS
from model.variants import VARIANTS
from model.zoo import variant_named
from scenarios.clusters import cluster
from scenarios.context import Context
from scenarios.groups import MOST_CONSUMERS, group
from scenarios.messages import producers
from scenarios.mirrors import expand
from scenarios.naming import Names
from scenarios.problems import ScenarioError, expected
from scenarios.reading import Document, Path
from scenarios.schema import MOST_PARTITIONS, HappeningModel, ScenarioModel
from scenarios.timeline import actions

RESERVED = frozenset({"broker", "zookeeper", "administrator"})


def build(
    document: Document, scenario: ScenarioModel, variant: str, program: Program | None
) -> Plan:
    """The plan of a scenario for a variant; ScenarioError lists what does not go together."""
    chosen = variant_named(variant)
    if chosen is None:
        problem = document.problem(("variant",), expected(variant, "a variant", VARIANTS))
        raise ScenarioError(document.name, [problem])
    if not scenario.clusters:
        said = "is empty; expected at least one cluster"
        raise ScenarioError(document.name, [document.problem(("clusters",), said)])
    context = Context(document, scenario, chosen)
    expand(context)
    clusters = tuple(cluster(context, name) for name in scenario.clusters)
    context.addresses = {one.name: _addresses(one) for one in clusters}
    groups = tuple(group(context, name, program) for name in context.scenario.groups)
    senders = producers(context)
    names = Names(clusters, groups, senders, scenario.timeline)
    _check_sizes(context, names, groups)
    _check_names(context, clusters, groups)
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
        sometimes=tuple(map(_happening, scenario.sometimes)),
        never=tuple(map(_happening, scenario.never)),
        strict_ownership=scenario.strict,
        progress_within_us=scenario.progress_within,
        work_factor=scenario.work_factor,
    )


def _addresses(cluster: ClusterPlan) -> str:
    return ",".join(f"{one.broker_id}:{one.host}:{one.port}" for one in cluster.brokers)


def _happening(model: HappeningModel) -> Happening:
    return Happening(
        model.event,
        model.node or "",
        model.after or "",
        model.before or "",
        tuple(model.detail.items()),
    )


# --- what only the whole can show ------------------------------------------------------


def _check_sizes(context: Context, names: Names, groups: tuple[GroupPlan, ...]) -> None:
    """Refuse what no machine could run."""
    partitions = names.partitions()
    if partitions > MOST_PARTITIONS:
        said = f"there are {partitions} partitions in all; expected at most {MOST_PARTITIONS}"
        context.problem(("clusters",), said)
    consumers = sum(len(one.consumers) for one in groups)
    if consumers > MOST_CONSUMERS:
        said = f"there are {consumers} consumers in all; expected at most {MOST_CONSUMERS}"
        context.problem(("groups",), said)


def _check_names(
    context: Context, clusters: tuple[ClusterPlan, ...], groups: tuple[GroupPlan, ...]
) -> None:
    """No two processes of one name, and no group named as the brokers are."""
    for one in clusters:
        seen: set[str] = set()
        for at, broker in enumerate(one.brokers):
            if broker.node in seen:
                path: Path = ("clusters", one.name, "brokers", at)
                said = f"{broker.node} is there already; give one of the two a `name`"
                context.problem(path, said)
            seen.add(broker.node)
    for name in RESERVED.intersection(member.name for member in groups):
        context.problem(("groups", name), "is a reserved word; choose another name")
    for name in {
        member.name: None for member in groups if member.name in context.scenario.producers
    }:
        context.problem(("producers", name), "is the name of a group; choose another name")


def _check_words(context: Context, names: Names) -> None:
    """The words in `sometimes`, `never` and `expect` have to exist."""
    nodes = names.nodes
    for field in ("sometimes", "never"):
        for at, one in enumerate(getattr(context.scenario, field)):
            _check_happening(context, (field, at), one, nodes)
    claims = [claim.name for claim in PROPERTIES]
    claims += message_claims(list(context.scenario.groups))
    for name, expectation in context.scenario.expect.items():
        context.variant_named(name, ("expect", name))
        for key in () if isinstance(expectation, str) else ("violated", "may"):
            for at, said in enumerate(getattr(expectation, key)):
                if said not in claims:
                    path: Path = ("expect", name, key, at)
                    context.problem(path, expected(said, "a property", claims))


def _check_happening(context: Context, path: Path, one: HappeningModel, nodes: list[str]) -> None:
    if one.event not in KINDS:
        context.problem((*path, "event"), expected(one.event, "a kind of event", KINDS))
    if one.node is not None and one.node not in nodes:
        said = expected(one.node, "a node of this scenario", nodes)
        context.problem((*path, "node"), said)
    for word, verb in (("after", one.after), ("before", one.before)):
        if verb is not None and verb not in VERBS:
            context.problem((*path, word), expected(verb, "a verb", VERBS))
