"""What the parts of a plan need to know while it is made, and the problems found so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from model.variants import VARIANTS, Variant
from model.zoo import variant_named
from scenarios.problems import Problem, ScenarioError, expected
from scenarios.reading import Document, Path
from scenarios.schema import ScenarioModel


@dataclass(slots=True)
class Context:
    """A scenario on its way to a plan."""

    document: Document
    scenario: ScenarioModel
    variant: Variant
    """The run's: where nothing else is said, everybody's."""
    problems: list[Problem] = field(default_factory=list)
    mirrored: dict[str, str] = field(default_factory=dict)
    """Group of a mirror -> that mirror, which is what the file has."""
    addresses: dict[str, str] = field(default_factory=dict)
    """Cluster -> its brokers, as `broker.list` has them."""

    def problem(self, path: Path, said: str) -> None:
        """There is one more problem."""
        if path[:1] == ("groups",) and path[1] in self.mirrored:
            rest = ("topics",) if "filter" in path else path[2:]
            path = ("mirrors", self.mirrored[str(path[1])], *rest)
        self.problems.append(self.document.problem(path, said))

    def stop_if_wrong(self) -> None:
        """Give up if there have been problems."""
        if self.problems:
            raise ScenarioError(self.document.name, self.problems)

    def prefix(self, cluster: str) -> str:
        """What stands before the names of a cluster's processes, if there are several."""
        return f"{cluster}:" if len(self.scenario.clusters) > 1 else ""

    def variant_named(self, name: str | None, path: Path) -> Variant:
        """The variant of this name; the run's if there is none."""
        if name is None:
            return self.variant
        found = variant_named(name)
        if found is None:
            self.problem(path, expected(name, "a variant", VARIANTS))
            return self.variant
        return found

    def cluster_of(self, group: str) -> str:
        """The cluster of a group: the one it names, or the only one."""
        named = self.scenario.groups[group].cluster
        clusters = list(self.scenario.clusters)
        if named is None:
            if len(clusters) > 1:
                said = f"needs `cluster`, since there are several: {', '.join(clusters)}"
                self.problem(("groups", group), said)
            return clusters[0]
        if named not in clusters:
            path: Path = ("groups", group, "cluster")
            self.problem(path, expected(named, "a cluster", clusters))
            return clusters[0]
        return named

    def topics_of(self, cluster: str) -> set[str]:
        """The topics that a cluster has, or comes to have by the timeline.

        What the timeline creates is in the cluster that has it already, or in the first one.
        """
        clusters = self.scenario.clusters
        made = {getattr(entry, "create_topic") for entry in self.scenario.timeline}  # noqa: B009
        old = {topic for one in clusters.values() for topic in one.topics}
        new = made - old - {None} if cluster == next(iter(clusters)) else set()
        return {*clusters[cluster].topics, *new}
