"""Addresses and credentials of a ZooKeeper."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Any

from kazoo.hosts import collect_hosts

from watchkeeper.real.errors import EnvironmentProblem

TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Access:
    """The addresses, credentials and certificates of one ZooKeeper."""

    hosts: str
    """Comma-separated addresses and an optional chroot: `host:port,host:port/chroot`."""
    auth: tuple[tuple[str, str], ...] = ()
    """Pairs of scheme and credential, as `addauth` takes them."""
    tls: tuple[tuple[str, Any], ...] = ()
    """kazoo's TLS options."""
    timeout_s: float = TIMEOUT_S

    @property
    def addresses(self) -> tuple[str, ...]:
        """The host:port of each server; raises EnvironmentProblem if `hosts` cannot be parsed."""
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
        """The znode that all paths are relative to; empty for the root."""
        _, slash, path = self.hosts.partition("/")
        return f"/{path.strip('/')}" if slash and path.strip("/") else ""

    @property
    def to_show(self) -> tuple[tuple[str, Any], ...]:
        """The credentials as kazoo's options, without the TLS options."""
        return (("auth_data", list(self.auth)),) if self.auth else ()

    @property
    def options(self) -> tuple[tuple[str, Any], ...]:
        """Credentials and certificates as kazoo's options."""
        return (*self.to_show, *self.tls)

    def not_an_address(self, error: Exception) -> EnvironmentProblem:
        """The error for `hosts` that cannot be parsed or connected to."""
        return EnvironmentProblem(
            f"{self.hosts!r} is no address of a ZooKeeper ({error}); write "
            "host:port,host:port/chroot"
        )

    def tls_context(self) -> ssl.SSLContext | None:
        """The TLS context for a connection; None without TLS."""
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
