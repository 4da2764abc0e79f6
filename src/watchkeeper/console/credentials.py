"""The credentials of a client of ZooKeeper, as options and their defaults give them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from watchkeeper.console.exit import USAGE, Stop
from watchkeeper.console.extras import needing

if TYPE_CHECKING:
    from watchkeeper.real.access import Access


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client needs to connect: ACL credentials and TLS files."""

    auth: tuple[str, ...] = ()
    """Each as scheme:credential."""
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    as_defaults: frozenset[str] = field(default=frozenset(), compare=False)
    """Those that are defaults of the user, and stand in no command."""

    @property
    def options(self) -> tuple[str, ...]:
        """The options that give the same, with the secrets left out."""
        files = [name for name in ("tls_ca", "tls_cert", "tls_key") if getattr(self, name)]
        shown = [f"--auth {entry.partition(':')[0]}:..." for entry in self.auth]
        shown = [] if "auth" in self.as_defaults else shown
        shown += [
            f"--{name.replace('_', '-')} {shlex.quote(getattr(self, name))}"
            for name in files
            if name not in self.as_defaults
        ]
        return tuple(shown)

    def access(self, hosts: str) -> Access:
        """Return how to connect to these hosts; Stop says what is missing or not understood."""
        with needing("a live ZooKeeper"):
            from watchkeeper.real.access import Access
        return Access(hosts, tuple(map(_pair, self.auth)), self._tls())

    def _tls(self) -> tuple[tuple[str, Any], ...]:
        """The options as kazoo names them."""
        if self.tls_key is not None and self.tls_cert is None:
            raise Stop(USAGE, "--tls-key goes with --tls-cert, whose key it is")
        given = {"ca": self.tls_ca, "certfile": self.tls_cert, "keyfile": self.tls_key}
        options = tuple((name, value) for name, value in given.items() if value is not None)
        return (("use_ssl", True), *options) if options else ()


NONE = Credentials()


def _pair(text: str) -> tuple[str, str]:
    scheme, colon, credential = text.partition(":")
    if not colon or not credential:
        raise Stop(USAGE, "--auth is written scheme:credential, as in digest:user:password")
    return scheme, credential
