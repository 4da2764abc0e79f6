"""What a judge has seen: the first violation of each property, and how often it could be."""

from __future__ import annotations

from collections.abc import Iterator

from watchkeeper.model.properties.ownership import First
from watchkeeper.model.properties.verdicts import NO_SUBJECT, Finding, Property, Subject, counted


class Evidence:
    """The evidence on some properties."""

    def __init__(self, claims: tuple[Property, ...]) -> None:
        self._claims = claims
        self._first = {claim.name: First() for claim in claims}
        self._exercised = dict.fromkeys(self._first, 0)
        self._measured: dict[str, str] = {}

    def exercise(self, claim: Property) -> None:
        """Count an occasion on which a property could have been violated."""
        self._exercised[claim.name] += 1

    def measure(self, claim: Property, text: str) -> None:
        """Add what was counted beside a property that may hold all the same."""
        self._measured[claim.name] = text

    def violate(
        self,
        claim: Property,
        at_us: int,
        shape: str,
        text: str,
        about: Subject = NO_SUBJECT,
    ) -> None:
        """Note a violation."""
        self._first[claim.name].note(at_us, shape, text, about)

    def findings(self) -> Iterator[Finding]:
        """Yield the finding on each property."""
        for claim in self._claims:
            number = self._exercised[claim.name]
            held = f"on {counted(number, 'occasion')}{self._measured.get(claim.name, '')}"
            yield self._first[claim.name].finding(claim, held, number)
