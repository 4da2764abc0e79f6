"""The schema of a scenario file, as pydantic models; its JSON Schema is made from them.

The verbs of timeline entries come from `watchkeeper.model.plan.faults`, so that each is
written down once.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema, create_model

from watchkeeper.model.actor.operations import Purpose
from watchkeeper.model.plan.faults import VERBS, Option, Verb
from watchkeeper.model.plan.roles import roles_for
from watchkeeper.model.registry.paths import Layout
from watchkeeper.scenarios.schema.fields import Model, Seeds, Word
from watchkeeper.scenarios.schema.message_schema import (
    Guaranteed,
    HandlingModel,
    MirrorModel,
    ProducerModel,
    StorageModel,
)
from watchkeeper.scenarios.schema.replication_schema import ReplicationModel
from watchkeeper.scenarios.schema.search_schema import BoundsModel, ScheduleModel
from watchkeeper.scenarios.text import units


def _written(pattern: str, example: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern, "examples": [example]})


_DURATION = _written(r"^\d+(\.\d+)?(us|ms|s|m|h)$", "5s")

Duration = Annotated[int, BeforeValidator(units.parse_duration), _DURATION]
Tick = Annotated[int, BeforeValidator(partial(units.parse_duration, least_us=10_000)), _DURATION]
"""Of a server: the time between its looks at the sessions."""
Lasting = Annotated[
    int, BeforeValidator(partial(units.parse_duration, least_us=1_000)), _DURATION
]
"""What is repeated, or counted in milliseconds, cannot be nothing."""
Rate = Annotated[
    int, BeforeValidator(units.parse_rate), _written(r"^\d+(\.\d+)?/(s|m|h)$", "200/s")
]
Size = Annotated[
    int, BeforeValidator(units.parse_size), _written(r"^\d+(\.\d+)?(B|kB|KiB|MB|MiB)$", "100B")
]

MOST_PARTITIONS = 20_000
"""In all clusters together, with those that the timeline adds."""

LONGEST_NAME = 100
MOST_DATA = 100_000
"""Characters of the data of a znode that the timeline writes."""
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
HOST = r"[A-Za-z0-9][A-Za-z0-9.-]*"
Name = Annotated[str, StringConstraints(pattern=f"^{NAME}$", max_length=LONGEST_NAME)]
Host = Annotated[str, StringConstraints(pattern=f"^{HOST}$", max_length=200)]
VariantName = Annotated[str, StringConstraints(min_length=1, max_length=60)]


# --- clusters --------------------------------------------------------------------------


class ZooKeeperModel(Model):
    """An ensemble."""

    servers: int = Field(3, ge=1, le=9, description="the number of servers")
    tick: Tick = Field("500ms", validate_default=True, description="ZooKeeper's tickTime")
    lists_ephemerals: bool = Field(
        True, description="whether its servers have getEphemerals (since 3.6)"
    )


class BrokerModel(Model):
    """A broker."""

    id: int = Field(ge=0, le=2_147_483_647, description="its logical id")
    name: Name | None = Field(
        None, description="the name of the process, if two have the same id"
    )
    host: Host | None = Field(None, description="its machine")
    port: int = Field(9092, ge=1, le=65_535, description="the port on which it listens")
    starts: Duration | Literal["never"] = Field(
        "0s", validate_default=True, description="its start; `never` leaves it to the timeline"
    )
    partitions: dict[Name, int] = Field(
        default_factory=dict,
        description="0.7: by topic: its number of partitions, if it differs from the others",
    )


class TopicModel(Model):
    """A topic."""

    partitions: int | None = Field(
        None, ge=1, le=MOST_PARTITIONS, description="the number in all"
    )
    partitions_per_broker: int | None = Field(
        None, ge=1, le=MOST_PARTITIONS, description="the number on each broker"
    )
    replicas: int = Field(
        1, ge=1, le=10, description="0.8: the number of brokers with each partition"
    )


class ClusterModel(Model):
    """Brokers, their topics, and the ensemble they register with."""

    zookeeper: ZooKeeperModel = Field(
        default_factory=lambda: ZooKeeperModel.model_validate({}),
        description="the ensemble of this cluster",
    )
    brokers: int | list[BrokerModel] = Field(3, description="their number, or a list")
    layout: Layout | None = Field(
        None, description="the layout of the registry; default: that of the variant"
    )
    variant: VariantName | None = Field(
        None, description="the variant of its brokers; default: that of the run"
    )
    session_timeout: Lasting = Field(
        "2s", validate_default=True, description="that of its brokers"
    )
    topics: dict[Name, TopicModel] = Field(description="its topics, by name")
    leaders: Literal["administrator", "controller"] = Field(
        "administrator",
        description="0.8: who elects the leaders of partitions: the administrator, or the "
        "controller that the brokers elect",
    )
    unclean_leader_election: bool | None = Field(
        None,
        description="with `leaders: controller`: whether a replica that is not in the ISR may "
        "lead; default: true, as in 0.8.2",
    )
    replication: ReplicationModel | None = Field(
        None,
        description="with `leaders: controller`: brokers carry out the controller's requests and "
        "replicate messages; default: leaders are what ZooKeeper says",
    )
    storage: StorageModel | None = Field(
        None,
        description="how messages are stored; default: they are not, and logs only have a length",
    )


# --- groups ----------------------------------------------------------------------------


class FilterModel(Model):
    """A topic filter: a white list or a black list, and streams for all it allows."""

    white_list: Word | None = Field(
        None, description="a regular expression of the topics to read"
    )
    black_list: Word | None = Field(
        None, description="a regular expression of the topics not to read"
    )
    streams: int = Field(
        1, ge=1, le=1_000, description="the number of streams for all topics together"
    )


class ConsumerModel(Model):
    """A consumer that differs from the others of its group."""

    id: Name | None = Field(None, description="consumer.id; default: a number")
    host: Host | None = Field(None, description="its machine")
    starts: Duration | Literal["never"] | None = Field(None, description="its start")
    streams: dict[Name, int] | None = Field(None, description="by topic: its number of streams")
    filter: FilterModel | None = Field(None, description="a topic filter, instead of `streams`")
    variant: VariantName | None = Field(None, description="default: that of the run")
    config: dict[str, Any] = Field(
        default_factory=dict, description="settings, with Kafka's names"
    )


class GroupModel(Model):
    """A group of consumers."""

    cluster: Name | None = Field(None, description="the cluster; needed if there are several")
    consumers: int | list[ConsumerModel] = Field(description="their number, or a list")
    ids: Literal["numbered", "drawn"] = Field(
        "numbered", description="whether consumers have configured ids or random ones"
    )
    streams: dict[Name, int] | None = Field(
        None, description="by topic: the streams of each consumer"
    )
    filter: FilterModel | None = Field(None, description="a topic filter, instead of `streams`")
    variant: VariantName | None = Field(None, description="default: that of the run")
    config: dict[str, Any] = Field(
        default_factory=dict,
        description="settings, with Kafka's names; `consumer.id` gives one id to all members",
    )
    starts: Duration = Field(
        "1s", validate_default=True, description="the start of the first consumer"
    )
    apart: Duration = Field(
        "100ms", validate_default=True, description="the time from one start to the next"
    )
    fetch_every: Lasting = Field(
        "1s", validate_default=True, description="the fetch interval of each consumer"
    )
    fetches: Literal["records", "as in 0.8"] = Field(
        "records",
        description="replicated: how consumers fetch: `records`, in a layout of this project, or "
        "`as in 0.8`, with the requests of Kafka's consumers",
    )
    guarantee: Guaranteed | None = Field(
        None, description="its delivery guarantee, which is judged"
    )
    handling: HandlingModel | None = Field(
        None, description="how each member handles its messages"
    )
    follows: Name | None = Field(
        None, description="the group of another cluster from which it takes over"
    )


# --- the timeline ----------------------------------------------------------------------


class TriggerModel(Model):
    """A step of a member."""

    node: Word = Field(description="the process")
    purpose: Purpose = Field(description="the purpose of the request")
    nth: int = Field(
        1, ge=1, le=100_000, description="the number of the request among those with this purpose"
    )
    when: Literal["before", "after_reply"] = Field(
        "after_reply", description="whether before the request or after its reply"
    )


class EntryBase(Model):
    """An entry of the timeline: moment, verb, target."""

    at: Duration | None = Field(None, description="the time since the start of the run")
    on: TriggerModel | None = Field(None, description="a step of a member, instead of a time")


OPTION_FIELDS: dict[Option, tuple[str, Any, str]] = {
    "for": ("for_", Duration, "the duration"),
    "as": ("as_", Literal["same id", "new id"], "the id under which it starts"),
    "unknown": ("unknown", Duration, "the time until the client learns of it"),
    "lands_after": ("lands_after", Duration, "the time after which a lost request takes effect"),
    "from": ("from_", Word, "the other side: zookeeper, brokers, a node, or a role"),
    "direction": (
        "direction",
        Literal["both", "to", "from"],
        "the direction that is cut: both, only to the other side, or only from it",
    ),
    "by": ("by", Duration, "the amount"),
    "each": ("each", Duration, "the time that each server is down, and the pause after it"),
    "to": ("to", Word, "the target"),
    "partitions": (
        "partitions",
        Annotated[int, Field(ge=1, le=MOST_PARTITIONS)],
        "the number in all",
    ),
    "partitions_per_broker": (
        "partitions_per_broker",
        Annotated[int, Field(ge=1, le=MOST_PARTITIONS)],
        "the number on each broker",
    ),
    "rate": ("rate", Rate, "messages in a unit of time"),
    "size": ("size", Size, "the size of a message"),
    "acks": (
        "acks",
        Literal["none", "leader", "all"] | Annotated[int, Field(ge=2, le=10)],
        "replicated: whose confirmation a producer waits for: none, the leader's, that of every "
        "member of the ISR, or with a number that of so many members, with the leader",
    ),
    "times": ("times", Annotated[int, Field(ge=2, le=10_000)], "the factor"),
    "data": ("data", Annotated[str, Field(max_length=MOST_DATA)], "the data as text"),
}

assert set(OPTION_FIELDS) == set(get_args(Option))


def _about(verb: Verb) -> str:
    """What a verb does, and the roles that it may name."""
    roles = [role.name for role in roles_for(verb)]
    return f"{verb.about}; also by role: {', '.join(roles)}" if roles else verb.about


def _entry_model() -> type[EntryBase]:
    fields: dict[str, Any] = {}
    for verb in VERBS.values():
        fields[verb.name] = (Word | None, Field(None, description=_about(verb)))
    for option, (name, kind, about) in OPTION_FIELDS.items():
        fields[name] = (kind | None, Field(None, alias=option, description=about))
    return create_model("Entry", __base__=EntryBase, **fields)


Entry = _entry_model()


# --- the whole -------------------------------------------------------------------------


class SometimesModel(Model):
    """Something that is looked for in the trace."""

    event: Word = Field(description="a kind of event of the trace")
    node: Word | None = Field(None, description="the process")
    partition: Word | None = Field(
        None, description="the topic and the partition, such as clicks/0-0"
    )
    after: Word | None = Field(None, description="only after an action with this verb")
    before: Word | None = Field(None, description="only before the next action with this verb")
    detail: dict[str, Any] = Field(default_factory=dict, description="values in its detail")
    variants: list[Word] | None = Field(
        None, description="the variants in whose runs it is looked for; all by default"
    )


class ViolatedModel(Model):
    """Which properties are expected to be violated."""

    violated: list[str] = Field(description="violated in every run")
    may: list[str] = Field(default_factory=list, description="violated in some runs")
    limit: Word | None = Field(
        None,
        description="why no client can avoid it, as a sentence; a run that meets this "
        "expectation is then reported as a known limit",
    )


Expectation = Literal["holds"] | ViolatedModel


class LiveModel(Model):
    """Notes on live runs of this scenario."""

    differs: Word | None = Field(
        None, description="why their verdict may differ from the simulated one"
    )


class WorldsModel(Model):
    """Notes on single worlds."""

    live: LiveModel = Field(
        default_factory=lambda: LiveModel(differs=None), description="for live runs"
    )


class SweepModel(Model):
    """The seeds, variants and values of a sweep, unless the command states others."""

    seeds: Seeds | None = Field(None, description="their number, such as 100, or a range: 5..20")
    variants: list[VariantName] = Field(
        default_factory=list, description="the variants; default: that of the scenario"
    )
    set: dict[Word, Annotated[list[Any], Field(min_length=1)]] = Field(
        default_factory=dict,
        description="by path in this file: the values that the field gets in turn",
    )


class ScenarioModel(Model):
    """A scenario."""

    name: Name = Field(description="the name of the file")
    about: Word = Field(description="a description")
    variant: VariantName = Field("hardened", description="the default variant")
    clusters: dict[Name, ClusterModel] = Field(description="the clusters, by name")
    groups: dict[Name, GroupModel] = Field(
        default_factory=dict, description="the groups, by name"
    )
    producers: dict[Name, ProducerModel] = Field(
        default_factory=dict,
        description="the producers, by name; default: one if messages are stored",
    )
    mirrors: dict[Name, MirrorModel] = Field(
        default_factory=dict,
        description="the mirrors, by name; each reads clusters and sends to another",
    )
    processes: dict[Name, Annotated[list[Word], Field(max_length=50)]] = Field(
        default_factory=dict,
        description="by name: members that run in one process, each with a session of its own "
        "(`partition` and `delay` affect the messages of one member, not of its process); "
        "default: each member has its own process",
    )
    timeline: list[Entry] = Field(  # type: ignore[valid-type]
        default_factory=list, description="the entries, in any order"
    )
    settle: Duration = Field(
        "10s",
        validate_default=True,
        description="the time that the run continues after the timeline",
    )
    sometimes: list[SometimesModel] = Field(
        default_factory=list, description="events that have to occur, or the run is unknown"
    )
    never: list[SometimesModel] = Field(
        default_factory=list, description="events that must not occur"
    )
    expect: dict[VariantName, Expectation] = Field(
        default_factory=dict, description="by variant: holds, or the violated properties"
    )
    strict: bool = Field(
        False, description="whether the strict form of single ownership counts for the verdict"
    )
    progress_within: Duration | None = Field(
        None, description="the bound of progress; default: a computed one"
    )
    work_factor: int = Field(4, ge=1, le=1_000, description="the factor of the work bound")
    bounds: BoundsModel | None = Field(  # type: ignore[valid-type]
        None, description="the bounds of a search of every interleaving"
    )
    schedule: ScheduleModel | None = Field(
        None, description="the steps of a counterexample, to be replayed"
    )
    sweep: SweepModel | None = Field(None, description="the sweep of this scenario")
    worlds: WorldsModel = Field(
        WorldsModel(), description="the worlds whose verdicts may differ, and why"
    )


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file, for editors."""
    schema = ScenarioModel.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "A watchkeeper scenario"
    return schema
