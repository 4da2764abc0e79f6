"""The latencies of a simulation under the name of the file that they come from."""

from __future__ import annotations

from dataclasses import dataclass

from watchkeeper.sim.engine.latency_profile import DEFAULT, Profile


@dataclass(frozen=True, slots=True)
class NamedProfile:
    """The latencies of a simulation, and the file that they come from."""

    source: str
    latencies: Profile
    text: str
    """The text of the file."""

    @property
    def digest(self) -> str:
        """Return the digest of the latencies."""
        return self.latencies.digest

    def to_json(self) -> dict[str, str]:
        """Return the fields of a verdict."""
        return {"file": self.source, "digest": self.digest}


def digest_of(profile: NamedProfile | None) -> str:
    """Return the part of a run's name for its profile; empty for the default latencies."""
    if profile is None or profile.latencies == DEFAULT:
        return ""
    return profile.digest
