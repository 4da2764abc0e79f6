"""A ZooKeeper client on kazoo, and tools that use one.

Read `client` first: why all events go through one queue. `codec` translates operations and
responses, with the `requests` that kazoo lacks; `connection` sends and reads in batches;
`attempts` limits an attempt to connect; `replay_client` adds what only a replay needs
(SetWatches); `plain_client` serves what is done once. Tools: `sessions` (granted timeouts, ending
a session), temporary znodes in `scratch_znode`, `snapshot` (a consistent read of the registry),
`reset_offsets`, and `transaction`, which carries an administrative change out.
"""
