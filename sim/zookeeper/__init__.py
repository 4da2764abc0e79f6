"""A simulated ZooKeeper ensemble and its clients.

Read in this order: `network` (wires, cuts, delays), `connection` (a TCP connection, and the
requests on it), `server` (one server: answers reads, forwards writes, fires watches),
`ensemble` (the leader orders writes and replicates them), `election` (who leads), `sessions`
(the leader's leases), `lifetimes` (when it deletes containers). On the other side `client`
keeps a session and a connection, `heartbeat` its pings. `batch` answers a pipelined batch of
operations at a server.
"""
