"""How the command line says where a ZooKeeper is, and what it asks of its clients."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from watchkeeper.endings import USAGE, Stop

if TYPE_CHECKING:
    from real.access import Access


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client shows to come in."""

    auth: tuple[str, ...] = ()
    """Each as scheme:credential."""
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """The options that say the same; a credential is nothing to be printed."""
        given = {"--tls-ca": self.tls_ca, "--tls-cert": self.tls_cert, "--tls-key": self.tls_key}
        shown = [f"--auth {one.partition(':')[0]}:..." for one in self.auth]
        shown += [f"{name} {shlex.quote(file)}" for name, file in given.items() if file]
        return tuple(shown)

    def access(self, hosts: str) -> Access:
        """How to come to these hosts; Stop says what is missing or not understood."""
        try:
            from real.access import Access
        except ImportError as error:
            raise Stop(
                USAGE, f"{error.name} is not installed; pip install 'watchkeeper[live]' brings it"
            ) from None
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
