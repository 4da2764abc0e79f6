"""The context in which the parts of a plan are built, and the problems found so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from watchkeeper.model.group.variants import VARIANTS, Variant
from watchkeeper.model.mutants.by_name import variant_named
from watchkeeper.scenarios.schema.schema import ScenarioModel
from watchkeeper.scenarios.text.document import Document, Path
from watchkeeper.scenarios.text.errors import Problem, ScenarioError, expected


@dataclass(slots=True)
class Context:
    """A scenario while its plan is built."""

    document: Document
    scenario: ScenarioModel
    variant: Variant
    """The variant of the run, for each member that names no other."""
    problems: list[Problem] = field(default_factory=list)
    mirrored: dict[str, str] = field(default_factory=dict)
    """Group of a mirror -> the mirror that the file names."""
    addresses: dict[str, str] = field(default_factory=dict)
    """Cluster -> its brokers, as `broker.list` has them."""

    def problem(self, path: Path, message: str) -> None:
        """Record a problem."""
        if path[:1] == ("groups",) and path[1] in self.mirrored:
            rest = ("topics",) if "filter" in path else path[2:]
            path = ("mirrors", self.mirrored[str(path[1])], *rest)
        self.problems.append(self.document.problem(path, message))

    def stop_if_wrong(self) -> None:
        """Give up if there have been problems."""
        if self.problems:
            raise ScenarioError(self.document.name, self.problems)

    def prefix(self, cluster: str) -> str:
        """The prefix of the names of a cluster's processes; empty if there is one cluster."""
        return f"{cluster}:" if len(self.scenario.clusters) > 1 else ""

    def variant_named(self, name: str | None, path: Path) -> Variant:
        """The variant of this name; the variant of the run for None."""
        if name is None:
            return self.variant
        found = variant_named(name)
        if found is None:
            self.problem(path, expected(name, "a variant", VARIANTS))
            return self.variant
        return found

    def cluster_of(self, group: str) -> str:
        """The cluster that a group names, or the only one."""
        named = self.scenario.groups[group].cluster
        clusters = list(self.scenario.clusters)
        if named is None:
            if len(clusters) > 1:
                message = f"needs `cluster`, since there are several: {', '.join(clusters)}"
                self.problem(("groups", group), message)
            return clusters[0]
        if named not in clusters:
            path: Path = ("groups", group, "cluster")
            self.problem(path, expected(named, "a cluster", clusters))
            return clusters[0]
        return named

    def topics_of(self, cluster: str) -> set[str]:
        """The topics that a cluster has, or gets from the timeline.

        A topic that the timeline creates belongs to the cluster that has it, or to the first.
        """
        clusters = self.scenario.clusters
        made = {getattr(entry, "create_topic") for entry in self.scenario.timeline}  # noqa: B009
        old = {topic for cluster in clusters.values() for topic in cluster.topics}
        new = made - old - {None} if cluster == next(iter(clusters)) else set()
        return {*clusters[cluster].topics, *new}
