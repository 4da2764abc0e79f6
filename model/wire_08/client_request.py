"""A request of a client of 0.8 as a call: with the client's name, which its broker logs."""

from __future__ import annotations

from msgspec import Struct

from watchkeeper.model.log.format.frames import WireStruct
from watchkeeper.model.wire_08.produce import NO_RESPONSE, ProduceRequest


class ClientRequest(Struct, frozen=True):
    """A request, and the name of the client that sends it."""

    request: WireStruct
    client_id: str

    @property
    def has_response(self) -> bool:
        """Whether the broker answers: it does not if it is to append without acknowledgement."""
        return not (isinstance(self.request, ProduceRequest) and self.request.acks == NO_RESPONSE)
