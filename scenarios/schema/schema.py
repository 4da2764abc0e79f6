"""What a scenario file may hold, as pydantic models; its JSON Schema is made from them.

The entries of a timeline are made from the alphabet of `model.faults`, so that a verb is
written down once.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BeforeValidator,
    Field,
    StringConstraints,
    WithJsonSchema,
    create_model,
)

from model.faults import VERBS, Option
from model.operations import Purpose
from model.registry import Layout
from scenarios import units
from scenarios.fields import Model, Word
from scenarios.message_schema import (
    HandlingModel,
    MirrorModel,
    ProducerModel,
    Promised,
    StorageModel,
)
from scenarios.search_schema import BoundsModel, ScheduleModel


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
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
HOST = r"[A-Za-z0-9][A-Za-z0-9.-]*"
Name = Annotated[str, StringConstraints(pattern=f"^{NAME}$", max_length=LONGEST_NAME)]
Host = Annotated[str, StringConstraints(pattern=f"^{HOST}$", max_length=200)]
VariantName = Annotated[str, StringConstraints(min_length=1, max_length=60)]


# --- clusters --------------------------------------------------------------------------


class ZooKeeperModel(Model):
    """An ensemble."""

    servers: int = Field(3, ge=1, le=9, description="how many servers")
    tick: Tick = Field("500ms", validate_default=True, description="ZooKeeper's tickTime")
    lists_ephemerals: bool = Field(
        True, description="whether its servers know getEphemerals, as those before 3.6 did not"
    )


class BrokerModel(Model):
    """A broker."""

    id: int = Field(ge=0, le=2_147_483_647, description="its logical id")
    name: Name | None = Field(None, description="the process's name, if the id is not enough")
    host: Host | None = Field(None, description="its machine")
    port: int = Field(9092, ge=1, le=65_535, description="where it listens")
    starts: Duration | Literal["never"] = Field(
        "0s", validate_default=True, description="when; `never` leaves it to the timeline"
    )
    partitions: dict[Name, int] = Field(
        default_factory=dict,
        description="0.7: topic: how many it holds, if not as many as the others",
    )


class TopicModel(Model):
    """A topic."""

    partitions: int | None = Field(None, ge=1, le=MOST_PARTITIONS, description="how many in all")
    partitions_per_broker: int | None = Field(
        None, ge=1, le=MOST_PARTITIONS, description="on each"
    )
    replicas: int = Field(1, ge=1, le=10, description="0.8: brokers that hold each partition")


class ClusterModel(Model):
    """Brokers, their topics, and the ensemble they register with."""

    zookeeper: ZooKeeperModel = Field(
        default_factory=lambda: ZooKeeperModel.model_validate({}),
        description="the ensemble of this cluster",
    )
    brokers: int | list[BrokerModel] = Field(3, description="how many, or which")
    layout: Layout | None = Field(
        None, description="of the registry; the variant's own unless given"
    )
    variant: VariantName | None = Field(
        None, description="how its brokers register; the run's variant unless given"
    )
    session_timeout: Lasting = Field("2s", validate_default=True, description="of its brokers")
    topics: dict[Name, TopicModel] = Field(description="by name")
    storage: StorageModel | None = Field(
        None, description="of the messages; unless given, logs hold none and only grow"
    )


# --- groups ----------------------------------------------------------------------------


class FilterModel(Model):
    """A topic filter: a white list or a black list, and streams for all it allows."""

    white_list: Word | None = Field(None, description="a regular expression of topics to take")
    black_list: Word | None = Field(None, description="a regular expression of topics to leave")
    streams: int = Field(1, ge=1, le=1_000, description="how many, for all topics together")


class ConsumerModel(Model):
    """A consumer that differs from the others of its group."""

    id: Name | None = Field(None, description="consumer.id; numbered ones unless given")
    host: Host | None = Field(None, description="its machine")
    starts: Duration | Literal["never"] | None = Field(None, description="when")
    streams: dict[Name, int] | None = Field(None, description="topic: number of streams")
    filter: FilterModel | None = Field(None, description="in place of streams")
    variant: VariantName | None = Field(None, description="if not the run's")
    config: dict[str, Any] = Field(default_factory=dict, description="by Kafka's names")


class GroupModel(Model):
    """A group of consumers."""

    cluster: Name | None = Field(None, description="which, if there are several")
    consumers: int | list[ConsumerModel] = Field(description="how many, or which")
    ids: Literal["numbered", "drawn"] = Field(
        "numbered", description="whether consumers have configured ids or draw their own"
    )
    streams: dict[Name, int] | None = Field(None, description="topic: streams of each consumer")
    filter: FilterModel | None = Field(None, description="in place of streams")
    variant: VariantName | None = Field(None, description="if not the run's")
    config: dict[str, Any] = Field(default_factory=dict, description="settings by Kafka's names")
    starts: Duration = Field("1s", validate_default=True, description="when the first starts")
    apart: Duration = Field("100ms", validate_default=True, description="until the next")
    fetch_every: Lasting = Field("1s", validate_default=True, description="of each consumer")
    promise: Promised | None = Field(None, description="of the messages, to be kept or broken")
    handling: HandlingModel | None = Field(None, description="of the messages, by each member")
    follows: Name | None = Field(
        None, description="the group of another cluster whose work it goes on with"
    )


# --- the timeline ----------------------------------------------------------------------


class TriggerModel(Model):
    """A step of a member."""

    node: Word = Field(description="whose")
    asks: Purpose = Field(description="what it asks ZooKeeper for")
    nth: int = Field(1, ge=1, le=100_000, description="which time")
    when: Literal["before", "after_reply"] = Field("after_reply", description="the moment")


class EntryBase(Model):
    """An entry of the timeline: when, what, to whom."""

    at: Duration | None = Field(None, description="so long after the beginning")
    on: TriggerModel | None = Field(None, description="at a step of a member, instead")


OPTION_FIELDS: dict[Option, tuple[str, Any, str]] = {
    "for": ("for_", Duration, "how long"),
    "as": ("as_", Literal["same id", "new id"], "under which id it starts"),
    "unknown": ("unknown", Duration, "for how long the client is not told"),
    "lands_after": ("lands_after", Duration, "when a lost request lands after all"),
    "from": ("from_", Word, "the other side: zookeeper, brokers, or a node"),
    "direction": (
        "direction",
        Literal["both", "to", "from"],
        "what does not pass: both ways, only to the other side, or only from it",
    ),
    "by": ("by", Duration, "by how much"),
    "each": ("each", Duration, "how long each is down, and the pause after"),
    "to": ("to", Word, "where to"),
    "partitions": (
        "partitions",
        Annotated[int, Field(ge=1, le=MOST_PARTITIONS)],
        "how many in all",
    ),
    "partitions_per_broker": (
        "partitions_per_broker",
        Annotated[int, Field(ge=1, le=MOST_PARTITIONS)],
        "how many on each broker",
    ),
    "rate": ("rate", Rate, "messages in a time"),
    "size": ("size", Size, "of a message"),
    "times": ("times", Annotated[int, Field(ge=2, le=10_000)], "so many times as long"),
}

assert set(OPTION_FIELDS) == set(get_args(Option))


def _entry_model() -> type[EntryBase]:
    fields: dict[str, Any] = {}
    for verb in VERBS.values():
        fields[verb.name] = (Word | None, Field(None, description=verb.about))
    for option, (name, kind, about) in OPTION_FIELDS.items():
        fields[name] = (kind | None, Field(None, alias=option, description=about))
    return create_model("Entry", __base__=EntryBase, **fields)


Entry = _entry_model()


# --- the whole -------------------------------------------------------------------------


class HappeningModel(Model):
    """Something that is looked for in the trace."""

    event: Word = Field(description="a kind of event of the trace")
    node: Word | None = Field(None, description="whose")
    after: Word | None = Field(None, description="only after an action with this verb")
    before: Word | None = Field(None, description="only before the next action with this verb")
    detail: dict[str, Any] = Field(default_factory=dict, description="what its detail holds")


class ViolatedModel(Model):
    """Which properties are expected to be violated."""

    violated: list[str] = Field(description="these are")
    may: list[str] = Field(default_factory=list, description="these may be, by chance")


Expectation = Literal["holds"] | ViolatedModel


class LiveModel(Model):
    """What is to be said of its live runs."""

    differs: Word | None = Field(
        None, description="why their verdict may be another than the simulated one"
    )


class WorldsModel(Model):
    """What is to be said of single worlds."""

    live: LiveModel = Field(
        default_factory=lambda: LiveModel(differs=None), description="of live runs"
    )


class SweepModel(Model):
    """What a sweep of it runs, unless the command says otherwise."""

    seeds: Word | None = Field(None, description="which, such as 0:100")
    variants: list[VariantName] = Field(
        default_factory=list, description="which; the scenario's own unless given"
    )
    set: dict[Word, Annotated[list[Any], Field(min_length=1)]] = Field(
        default_factory=dict, description="path in this file: the values it is given in turn"
    )


class ScenarioModel(Model):
    """A scenario."""

    name: Name = Field(description="as the file is called")
    about: Word = Field(description="what it shows")
    variant: VariantName = Field("hardened", description="which runs unless another is asked for")
    clusters: dict[Name, ClusterModel] = Field(description="by name")
    groups: dict[Name, GroupModel] = Field(default_factory=dict, description="by name")
    producers: dict[Name, ProducerModel] = Field(
        default_factory=dict, description="by name; one, unless given, where messages are stored"
    )
    mirrors: dict[Name, MirrorModel] = Field(
        default_factory=dict, description="by name; each reads clusters and sends to another"
    )
    timeline: list[Entry] = Field(  # type: ignore[valid-type]
        default_factory=list, description="what happens, in any order"
    )
    settle: Duration = Field(
        "10s", validate_default=True, description="how long the run goes on after the timeline"
    )
    sometimes: list[HappeningModel] = Field(
        default_factory=list, description="what must have happened, or the run shows nothing"
    )
    never: list[HappeningModel] = Field(
        default_factory=list, description="what must not have happened"
    )
    expect: dict[VariantName, Expectation] = Field(
        default_factory=dict, description="by variant: holds, or what is violated"
    )
    strict: bool = Field(
        False, description="whether the strict form of single ownership counts for the verdict"
    )
    progress_within: Duration | None = Field(
        None, description="the bound of progress, if not the computed one"
    )
    work_factor: int = Field(4, ge=1, le=1_000, description="the factor of the work bound")
    bounds: BoundsModel | None = Field(  # type: ignore[valid-type]
        None, description="of a search of every interleaving"
    )
    schedule: ScheduleModel | None = Field(
        None, description="the steps of a counterexample, to be replayed"
    )
    sweep: SweepModel | None = Field(None, description="of runs by the hundred")
    worlds: WorldsModel = Field(WorldsModel(), description="where worlds cannot agree, and why")


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file, for editors."""
    schema = ScenarioModel.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "A watchkeeper scenario"
    return schema
