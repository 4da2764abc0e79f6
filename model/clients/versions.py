"""The versions of the message path: which clients go with a version of the protocol."""

from __future__ import annotations

from typing import NamedTuple

from model.clients.connector import Connector
from model.clients.producer import Producer
from model.clients.shipped import Connector07
from model.variants import Variant


class Clients(NamedTuple):
    """The clients of one version."""

    name: str
    about: str
    producer: type[Producer] = Producer
    connector: type[Connector] = Connector


SOUND = Clients("sound", "the clients that we would ship")
AS_SHIPPED = Clients(
    "shipped", "those of Kafka 0.7.2, with what was wrong", connector=Connector07
)


def clients_of(variant: Variant) -> Clients:
    """The clients that go with a version of the protocol."""
    return AS_SHIPPED if variant.fetch_errors == "end the fetcher" else SOUND
