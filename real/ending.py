"""Ends somebody else's session, as only one who knows its password can."""

from __future__ import annotations

from real.access import Access, client_of
from real.wire import Session

PATIENCE_S = 5.0


def end_session(access: Access, session: Session) -> bool:
    """Go on with a session from another connection and close it there; whether that worked."""
    client = client_of(access, client_id=(session.number, session.password))
    client.start_async().wait(PATIENCE_S)
    is_the_same = client.client_id is not None and client.client_id[0] == session.number
    client.stop()
    client.close()
    return is_the_same
