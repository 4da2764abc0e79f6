"""A leader election of a dozen lines, in virtual time. One of its two tests fails on purpose."""

import time

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError

from watchkeeper.virtual import faults, simulated


def lead(world, name, terms):
    """Lead three times for two seconds, whenever no other process does."""
    client = KazooClient(hosts=world.hosts)
    client.start()
    while terms.count(name) < 3:
        try:
            client.retry(client.create, "/leader", name.encode(), ephemeral=True)
        except NodeExistsError:
            time.sleep(0.5)
            continue
        with world.section("leading", client):
            terms.append(name)
            time.sleep(2)
        client.delete("/leader")
    client.stop()
