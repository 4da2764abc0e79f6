"""A TCP proxy between clients and ZooKeeper, and between brokers, that injects network faults.

`proxy` is the entry: the faults and their API. A client has a `client_route` to each server, a
route has `connection`s, and each direction of a connection has a `valve` that holds messages
up. `messages` tells messages apart, by what `model.wire` knows of the protocol; `tap` records
what passes. `links` are those between brokers that replicate. Read `messages`, `valve`,
`connection`, `proxy`.
"""
