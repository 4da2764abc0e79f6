"""How to come to a ZooKeeper that runs already: where it is, and what it asks of clients."""

from __future__ import annotations

import logging
import ssl
from dataclasses import dataclass
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, KazooException, NoAuthError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.hosts import collect_hosts

from real.problems import EnvironmentProblem

PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True)
class Access:
    """Addresses, credentials, certificates."""

    hosts: str
    """Addresses with commas between them, and a chroot if there is one."""
    auth: tuple[tuple[str, str], ...] = ()
    """Scheme and credential, as `addauth` takes them."""
    tls: tuple[tuple[str, Any], ...] = ()
    """Options that kazoo has for TLS."""
    timeout_s: float = PATIENCE_S

    @property
    def addresses(self) -> tuple[str, ...]:
        """Each server's host:port; EnvironmentProblem where that cannot be read."""
        try:
            found, _ = collect_hosts(self.hosts)
        except (ValueError, TypeError) as error:
            raise self.not_an_address(error) from None
        return tuple(f"{host}:{port}" for host, port in found)

    @property
    def servers(self) -> str:
        """The addresses without the chroot."""
        return self.hosts.partition("/")[0]

    @property
    def chroot(self) -> str:
        """The znode below which everything is; empty for all of the tree."""
        _, slash, path = self.hosts.partition("/")
        return f"/{path.strip('/')}" if slash and path.strip("/") else ""

    @property
    def to_show(self) -> tuple[tuple[str, Any], ...]:
        """The credentials as kazoo's options; nothing of TLS."""
        return (("auth_data", list(self.auth)),) if self.auth else ()

    @property
    def options(self) -> tuple[tuple[str, Any], ...]:
        """Credentials and certificates as kazoo's options."""
        return (*self.to_show, *self.tls)

    def not_an_address(self, error: Exception) -> EnvironmentProblem:
        """What is said of hosts that nobody can connect to."""
        return EnvironmentProblem(
            f"{self.hosts!r} is no address of a ZooKeeper ({error}); write "
            "host:port,host:port/chroot"
        )

    def tls_context(self) -> ssl.SSLContext | None:
        """What a connection by TLS needs; None where there is none."""
        options = dict(self.tls)
        if not options.get("use_ssl"):
            return None
        try:
            context = ssl.create_default_context(cafile=options.get("ca"))
            context.check_hostname = bool(options.get("check_hostname", False))
            if options.get("certfile"):
                context.load_cert_chain(options["certfile"], options.get("keyfile"))
        except (OSError, ssl.SSLError) as error:
            raise EnvironmentProblem(
                f"the certificates for {self.hosts} cannot be read ({error}); give PEM files"
            ) from None
        return context


def client_of(access: Access, **options: Any) -> KazooClient:
    """A client that has not connected yet; EnvironmentProblem where it cannot be."""
    logger = logging.getLogger("watchkeeper.kazoo")
    logger.setLevel(logging.CRITICAL)
    try:
        return KazooClient(
            access.hosts,
            logger=logger,
            **{"timeout": access.timeout_s, **dict(access.options), **options},
        )
    except (ValueError, TypeError, KazooException) as error:
        raise access.not_an_address(error) from None


def connect(client: KazooClient, access: Access) -> None:
    """Connect a client, or say why nobody answers."""
    try:
        client.start(timeout=access.timeout_s)
    except NoAuthError:
        client.stop()
        client.close()
        raise EnvironmentProblem(
            f"the chroot of {access.hosts} may not be looked at by this client; give its "
            "credentials by --auth"
        ) from None
    except (KazooTimeoutError, KazooException, OSError, ValueError) as error:
        client.stop()
        client.close()
        why = "it refuses the credentials" if isinstance(error, AuthFailedError) else error
        raise EnvironmentProblem(
            f"no ZooKeeper answers at {access.hosts} within {access.timeout_s:g} s "
            f"({why}); check the address, and that a majority of its servers runs"
        ) from None
