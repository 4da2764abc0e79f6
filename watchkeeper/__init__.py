"""watchkeeper: simulate and verify systems that coordinate through ZooKeeper.

The door for users' own code:

    from watchkeeper import explore, simulate, properties, strategies

    result = simulate("consumer-crash", seed=7)
    assert result.holds, result

`simulate` runs a scenario and judges it; `properties` are the claims it is judged by;
`explore` searches every interleaving of programs of your own, and says what it has `Found`;
`strategies` draws scenarios for Hypothesis. `Consumer`, `Broker` and `Mirror` put a live
member into an application, over a real ZooKeeper; `Producer`, `Connector` and
`SimpleConsumer` send messages to live brokers and read them; `run_live` runs a program of your
own there.
`keep_results` reads a live broker into a store that has results and offsets together. What a
program may ask of its world stands in `model.operations` and `model.asks`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from watchkeeper.house import enter, needing

enter()

__version__ = "0.1.0"

_DOOR = {
    "simulate": ("watchkeeper.running", "simulate"),
    "explore": ("explore.own", "explore"),
    "Found": ("explore.own", "Found"),
    "Result": ("watchkeeper.result", "Result"),
    "load": ("scenarios", "load"),
    "Scenario": ("scenarios", "Scenario"),
    "ScenarioError": ("scenarios", "ScenarioError"),
    "Program": ("model.program", "Program"),
    "Ended": ("model.program", "Ended"),
    "Verdict": ("model.verdicts", "Verdict"),
    "properties": ("model.properties", None),
    "strategies": ("watchkeeper.strategies", None),
    "Consumer": ("real.embedding", "Consumer"),
    "Broker": ("real.registering", "Broker"),
    "Mirror": ("real.mirroring", "Mirror"),
    "Claim": ("real.handover", "Claim"),
    "NotOwned": ("real.handover", "NotOwned"),
    "Partition": ("model.asks", "Partition"),
    "run_live": ("real.living", "run_live"),
    "replay": ("watchkeeper.replaying_files", "replay"),
    "Connector": ("real.receiving", "Connector"),
    "Producer": ("real.sending", "Producer"),
    "SimpleConsumer": ("real.asking", "SimpleConsumer"),
    "keep_results": ("real.keeping", "keep_results"),
    "SqliteResults": ("real.sqlite_results", "SqliteResults"),
    "SegmentResults": ("real.segment_results", "SegmentResults"),
}
"""Public name -> module and attribute. They are imported when they are first used, so
that the command line starts quickly."""

__all__ = [
    "Broker",
    "Claim",
    "Connector",
    "Consumer",
    "Ended",
    "Found",
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
    import watchkeeper.strategies as strategies
    from explore.own import Found, explore
    from model import properties
    from model.asks import Partition
    from model.program import Ended, Program
    from model.verdicts import Verdict
    from real.asking import SimpleConsumer
    from real.embedding import Consumer
    from real.handover import Claim, NotOwned
    from real.keeping import keep_results
    from real.living import run_live
    from real.mirroring import Mirror
    from real.receiving import Connector
    from real.registering import Broker
    from real.segment_results import SegmentResults
    from real.sending import Producer
    from real.sqlite_results import SqliteResults
    from scenarios import Scenario, ScenarioError, load
    from watchkeeper.replaying_files import replay
    from watchkeeper.result import Result
    from watchkeeper.running import simulate


def __getattr__(name: str) -> Any:
    if name not in _DOOR:
        raise AttributeError(f"module 'watchkeeper' has no attribute {name!r}")
    module, attribute = _DOOR[name]
    with needing(f"watchkeeper.{name}"):
        loaded = import_module(module)
    return loaded if attribute is None else getattr(loaded, attribute)
