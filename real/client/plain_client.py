"""A client with the functions of kazoo, for what is done once: an audit, the begin of a run."""

from __future__ import annotations

import logging
import warnings
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, KazooException, NoAuthError
from kazoo.handlers.threading import KazooTimeoutError

from watchkeeper.real.access import Access
from watchkeeper.real.client.address_check import check_addresses
from watchkeeper.real.client.attempts import AttemptLimit
from watchkeeper.real.client.connection import Connection
from watchkeeper.real.errors import EnvironmentProblem


def client_of(access: Access, **options: Any) -> KazooClient:
    """Return an unconnected client, which does not wait long for a server that is silent.

    Raises EnvironmentProblem for invalid addresses.
    """
    logger = logging.getLogger("watchkeeper.kazoo")
    logger.setLevel(logging.CRITICAL)
    try:
        client = KazooClient(
            access.hosts,
            logger=logger,
            **{"timeout": access.timeout_s, **dict(access.options), **options},
        )
    except (ValueError, TypeError, KazooException) as error:
        raise access.not_an_address(error) from None
    Connection(client, AttemptLimit())
    return client


def connect(client: KazooClient, access: Access) -> None:
    """Connect a client; raises EnvironmentProblem with the reason if that fails."""
    check_addresses(access)
    try:
        with warnings.catch_warnings():
            # kazoo warns of a missing chroot; every command says so in a sentence of its own.
            warnings.filterwarnings("ignore", message="No chroot path exists")
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
