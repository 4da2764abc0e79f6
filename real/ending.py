"""Ends somebody else's session, as only one who knows its password can."""

from __future__ import annotations

import logging

from kazoo.client import KazooClient

from real.wire import Session

PATIENCE_S = 5.0


def end_session(hosts: str, session: Session) -> bool:
    """Go on with a session from another connection and close it there; whether that worked."""
    logger = logging.getLogger("watchkeeper.kazoo")
    client = KazooClient(hosts, client_id=(session.number, session.password), logger=logger)
    client.start_async().wait(PATIENCE_S)
    is_the_same = client.client_id is not None and client.client_id[0] == session.number
    client.stop()
    client.close()
    return is_the_same
