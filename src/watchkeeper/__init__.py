"""watchkeeper: simulate and verify systems that coordinate through ZooKeeper.

    from watchkeeper import explore, simulate, properties, strategies

    result = simulate("consumer-crash", seed=7)
    assert result.holds, result

In a test, without any server:

- `simulate` runs a scenario and returns a `Result`: its verdict by `properties`, its trace, and
  the command that reproduces it. `load` reads a scenario file.
- `explore` searches every interleaving of a few programs and returns an `ExploreResult`;
  `replay` follows a counterexample in the simulation or on a real ZooKeeper.
- `strategies` generates scenarios for Hypothesis.
- `watchkeeper.testing.ZooKeeper` is a server for any client, with faults as verbs.

In an application, with a real ZooKeeper:

- `Consumer` is a member of a group that assigns partitions to the application; `Connector` is
  one that also reads their messages, `SimpleConsumer` reads from one broker, `Producer` sends.
- `Broker` registers a broker; `Mirror` copies topics from cluster to cluster.
- `run_live` runs a `Program` of your own. `keep_results` stores results together with offsets,
  in a `SqliteResults` or `SegmentResults`.

A program awaits operations and effects: read `watchkeeper.model.actor.operations` and
`watchkeeper.model.actor.effects`. The packages, in the order in which to read them: `model` (the
protocol and its properties), `sim` (the simulated world), `real` (the same programs on real
servers), `checker` (the search), `scenarios` (scenario files), `reports` (figures), `pipeline`
(sweeps and analyses by Spark). Beside these, here: `api` (the functions above), `testing` (the
server for tests), `suite` (the plugin of pytest), `cli` and `console` (the command line), and a
folder for each use case: `run`, `check`, `sweep`, `analyze`, `operate`, `logs`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from watchkeeper.console.extras import needing

_PUBLIC = {
    "simulate": ("watchkeeper.api.simulate", "simulate"),
    "explore": ("watchkeeper.checker.user_model.explore", "explore"),
    "ExploreResult": ("watchkeeper.checker.user_model.explore", "ExploreResult"),
    "Result": ("watchkeeper.api.result", "Result"),
    "load": ("watchkeeper.scenarios", "load"),
    "Scenario": ("watchkeeper.scenarios", "Scenario"),
    "ScenarioError": ("watchkeeper.scenarios", "ScenarioError"),
    "Program": ("watchkeeper.model.actor.program", "Program"),
    "Ended": ("watchkeeper.model.actor.program", "Ended"),
    "Verdict": ("watchkeeper.model.properties.verdicts", "Verdict"),
    "properties": ("watchkeeper.model.judgement.judge", None),
    "strategies": ("watchkeeper.api.strategies", None),
    "Consumer": ("watchkeeper.real.embed.consumer", "Consumer"),
    "Broker": ("watchkeeper.real.embed.broker", "Broker"),
    "Mirror": ("watchkeeper.real.embed.mirror", "Mirror"),
    "Claim": ("watchkeeper.real.embed.handover", "Claim"),
    "NotOwned": ("watchkeeper.real.embed.handover", "NotOwned"),
    "Partition": ("watchkeeper.model.actor.effects", "Partition"),
    "run_live": ("watchkeeper.real.embed.member", "run_live"),
    "replay": ("watchkeeper.check.replay_file", "replay"),
    "Connector": ("watchkeeper.real.embed.connector", "Connector"),
    "Producer": ("watchkeeper.real.embed.producer", "Producer"),
    "SimpleConsumer": ("watchkeeper.real.embed.simple_consumer", "SimpleConsumer"),
    "keep_results": ("watchkeeper.real.embed.result_reader", "keep_results"),
    "SqliteResults": ("watchkeeper.real.results.sqlite", "SqliteResults"),
    "SegmentResults": ("watchkeeper.real.results.segments", "SegmentResults"),
}
"""Public name -> module and attribute. A module is imported at the first use of its name, so
that the command line starts quickly."""

__all__ = [
    "Broker",
    "Claim",
    "Connector",
    "Consumer",
    "Ended",
    "ExploreResult",
    "Mirror",
    "NotOwned",
    "Partition",
    "Producer",
    "Program",
    "Result",
    "Scenario",
    "ScenarioError",
    "SegmentResults",
    "SimpleConsumer",
    "SqliteResults",
    "Verdict",
    "__version__",
    "explore",
    "keep_results",
    "load",
    "properties",
    "replay",
    "run_live",
    "simulate",
    "strategies",
]

if TYPE_CHECKING:
    __version__: str
    import watchkeeper.api.strategies as strategies
    from watchkeeper.api.result import Result
    from watchkeeper.api.simulate import simulate
    from watchkeeper.check.replay_file import replay
    from watchkeeper.checker.user_model.explore import ExploreResult, explore
    from watchkeeper.model.actor.effects import Partition
    from watchkeeper.model.actor.program import Ended, Program
    from watchkeeper.model.judgement import judge as properties
    from watchkeeper.model.properties.verdicts import Verdict
    from watchkeeper.real.embed.broker import Broker
    from watchkeeper.real.embed.connector import Connector
    from watchkeeper.real.embed.consumer import Consumer
    from watchkeeper.real.embed.handover import Claim, NotOwned
    from watchkeeper.real.embed.member import run_live
    from watchkeeper.real.embed.mirror import Mirror
    from watchkeeper.real.embed.producer import Producer
    from watchkeeper.real.embed.result_reader import keep_results
    from watchkeeper.real.embed.simple_consumer import SimpleConsumer
    from watchkeeper.real.results.segments import SegmentResults
    from watchkeeper.real.results.sqlite import SqliteResults
    from watchkeeper.scenarios import Scenario, ScenarioError, load


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("watchkeeper")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'watchkeeper' has no attribute {name!r}")
    module, attribute = _PUBLIC[name]
    with needing(f"watchkeeper.{name}"):
        loaded = import_module(module)
    return loaded if attribute is None else getattr(loaded, attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
