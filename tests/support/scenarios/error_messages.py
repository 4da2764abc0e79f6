"""What is written in a scenario file by mistake, and what is said of it.

Each row is what is written, and under it, indented, the message; a message may go on in
the next line. The tests compare whole messages.
"""

from __future__ import annotations


def rows(table: str) -> list[tuple[str, str]]:
    """What is written and what is said, row by row."""
    found: list[tuple[str, str]] = []
    for line in table.strip("\n").split("\n"):
        if not line.startswith("    "):
            found.append((line, ""))
        else:
            written, message = found[-1]
            found[-1] = (written, f"{message} {line.strip()}".strip())
    return found


ENTRIES = r"""
{at: 5s, crsh: billing/1}
    timeline[1].crsh: is not a field here; did you mean 'crash'?
{at: 5s, crash: billing/7}
    timeline[1].crash: 'billing/7' is not a consumer or broker or server; did you mean
    'billing/2'?
{at: 5s, crash: biling/1}
    timeline[1].crash: 'biling/1' is not a consumer or broker or server; did you mean
    'billing/1'?
{at: 5s, produce: clickz, rate: 1/s}
    timeline[1].produce: 'clickz' is not a topic; did you mean 'clicks'?
{at: 5s, restart: billing/1, as: sameid}
    timeline[1].as: 'sameid' is not 'same id' or 'new id'; did you mean 'same id'?
{at: 5s, partition: billing/1, from: zookeper, for: 1s}
    timeline[1].from: 'zookeper' is not a side; did you mean 'zookeeper'?
{at: 5s, partition: billing/1, direction: out, for: 1s}
    timeline[1].direction: 'out' is not 'both', 'to' or 'from'; did you mean 'both'?
{on: {node: billing/1, purpose: clame}, lose: reply}
    timeline[1].on.purpose: 'clame' is not a word that may stand here; did you mean 'claim'?
{on: {node: billing/1, purpose: claim, when: after}, lose: reply}
    timeline[1].on.when: 'after' is not 'before' or 'after_reply'; did you mean
    'after_reply'?
{on: {node: biling/1, purpose: claim}, lose: reply}
    timeline[1].on.node: 'biling/1' is not a consumer or broker; did you mean 'billing/1'?
{on: {node: billing/1, purpose: claim}, lose: replay}
    timeline[1].lose: 'replay' is not a request; did you mean 'reply'?
{at: 5, crash: billing/1}
    timeline[1].at: 5 is not a duration; expected a number with its unit, such as 5s or 5ms
{at: 5.5, crash: billing/1}
    timeline[1].at: 5.5 is not a duration; expected a number with its unit, such as 5.5s or
    5.5ms
{at: 5sec, crash: billing/1}
    timeline[1].at: '5sec' is not a duration; expected a number with its unit: us, ms, s, m
    or h, such as 5s
{at: 2 minutes, crash: billing/1}
    timeline[1].at: '2 minutes' is not a duration; expected a number with its unit: us, ms,
    s, m or h, such as 2m
{at: soon, crash: billing/1}
    timeline[1].at: 'soon' is not a duration; expected a number with its unit, such as 5s or
    200ms
{at: -5s, crash: billing/1}
    timeline[1].at: '-5s' is not a duration; expected one that is not negative
{at: 50h, crash: billing/1}
    timeline[1].at: '50h' is longer than a day; expected at most 24h
{at: 5s, produce: clicks, rate: 200}
    timeline[1].rate: 200 is not a rate; expected messages per s, m or h, such as 200/s
{at: 5s, produce: clicks, rate: 0/s}
    timeline[1].rate: '0/s' is not a rate between 0.001/s and 10000000/s
{at: 5s, produce: clicks, rate: 1/s, size: 100}
    timeline[1].size: 100 is not a size; expected a number with its unit (B, kB, KiB, MB,
    MiB): 100B
{at: 5s, produce: clicks, rate: 1/s, size: 2GiB}
    timeline[1].size: '2GiB' is not a size; expected a number with its unit (B, kB, KiB, MB,
    MiB): 100B or 2kB
{on: {node: billing/1, purpose: claim, nth: 0}, lose: reply}
    timeline[1].on.nth: 0 is too small; expected at least 1
{on: {node: billing/1, purpose: claim, nth: two}, lose: reply}
    timeline[1].on.nth: 'two' is not a whole number
{at: 5s, crash: }
    timeline[1].crash: is empty; expected the name of a consumer, broker, producer, administrator,
    process or server
{at: 5s, crash: billing/1, leave: billing/1}
    timeline[1]: has 2 verbs, leave and crash; make an entry of each
{crash: billing/1}
    timeline[1]: needs `at` (a time) or `on` (a step of a member)
{at: 5s, on: {node: billing/1, purpose: claim}, crash: billing/1}
    timeline[1]: has both `at` and `on`; expected only one of the two
{at: 5s, lose: reply}
    timeline[1]: `lose` needs `on`: which request of which member
{on: {node: billing/1, purpose: claim}, leave: billing/1}
    timeline[1]: `leave` happens at a time; `on` is for faults
{at: 5s, pause: billing/1}
    timeline[1]: `pause` needs `for`: the duration
{at: 5s, produce: clicks}
    timeline[1]: `produce` needs `rate`: messages in a unit of time
{at: 5s, crash: billing/1, rate: 5/s}
    timeline[1].rate: is an option of `produce`, not of `crash`, which has none
{at: 5s, pause: billing/1, for: 1s, each: 1s}
    timeline[1].each: is an option of `rolling_restart`, not of `pause`, which has `for`
{at: 5s, crash: 5}
    timeline[1].crash: 5 is not text; put it in quotes
{at: 5s, crash: true}
    timeline[1].crash: true is not text; put it in quotes
{at: 5s, crash: [billing/1]}
    timeline[1].crash: ['billing/1'] is not text
{at: [5s], crash: billing/1}
    timeline[1].at: ['5s'] is not a duration; expected a number with its unit, such as 5s or
    200ms
{on: claim, lose: reply}
    timeline[1].on: 'claim' is not a mapping; expected fields such as node, purpose, nth
crash
    timeline[1]: 'crash' is not a mapping; expected fields such as at, on, start
{on: {node: billing/1}, lose: reply}
    timeline[1].on: needs `purpose`
{at: 5s, disk_full: broker/1, for: 1s}
    timeline[1].disk_full: broker/1 has no disk: its cluster needs `storage` or `replication`
{at: 5s, disk_slow: broker/1, for: 1s, times: 5}
    timeline[1].disk_slow: broker/1 has no disk: its cluster needs `storage` or `replication`
{at: 5s, torn_write: broker/1}
    timeline[1].torn_write: cannot be done: crash_host already tears the current write of a disk
{at: 5s, move_leader: clicks/1, to: broker/1}
    timeline[1].move_leader: the 0.7 layout has no leaders; partitions live where their name
    says
{at: 5s, delay: billing/1, by: 0s, for: 1s}
    timeline[1].by: '0s' is no time at all; expected more
{at: 5s, pause: billing/1, for: 0s}
    timeline[1].for: '0s' is no time at all; expected more
{at: 5s, abandon: billing/1, for: 0s}
    timeline[1].for: '0s' is no time at all; leave it out, or `crash` the process instead
{at: 5s, write_znode: /brokers/ids/1, data: "x", for: 0s}
    timeline[1].for: '0s' is no time at all; leave it out
{at: 5s, write_znode: /brokers/ids/1}
    timeline[1]: `write_znode` needs `data`: the data as text
{at: 5s, write_znode: brokers/ids/1, data: "x"}
    timeline[1].write_znode: 'brokers/ids/1' is not the path of a znode; expected '/' first
{at: 5s, delete_znode: /brokers/}
    timeline[1].delete_znode: '/brokers/' is not the path of a znode below the root
{at: 5s, delete_znode: /}
    timeline[1].delete_znode: '/' is not the path of a znode below the root
{at: 5s, delete_znode: /zookeeper/quota}
    timeline[1].delete_znode: '/zookeeper/quota' belongs to ZooKeeper itself; expected a path
    of Kafka's
{at: 5s, delete_znode: /brokers/ids/1, for: 1s}
    timeline[1].for: is an option of `pause`, `abandon`, `disconnect`, `partition`, `delay`,
    `lag`, `quorum_loss`, `write_znode`, `produce`, `disk_slow`, `disk_full`, not of
    `delete_znode`, which has none
{at: 5s, unregister: administrator}
    timeline[1].unregister: 'administrator' is not a consumer or broker; expected one of:
    billing/0, billing/1, billing/2, broker/0, broker/1, broker/2
{at: 5s, abandon: broker/1}
    timeline[1].abandon: 'broker/1' is not a consumer; expected one of: billing/0, billing/1,
    billing/2
{at: 5s, move: broker/1, to: "spare example"}
    timeline[1].to: 'spare example' is not an address; expected a host, or host:port
{at: 5s, move: broker/1, to: "spare.example:0"}
    timeline[1].to: 'spare.example:0' is not an address; expected a host, or host:port
{at: 5s, move: broker/1, to: "spare.example:65536"}
    timeline[1].to: 'spare.example:65536' is not an address; expected a host, or host:port
{at: 5s, move: broker/1, to: "spare.example:http"}
    timeline[1].to: 'spare.example:http' is not an address; expected a host, or host:port
{at: 5s, create_topic: "a/b", partitions: 2}
    timeline[1].create_topic: 'a/b' is not a name; expected letters, digits, '.', '_' and
    '-', no sign at its beginning, at most 100 characters
{at: 5s, create_topic: views}
    timeline[1]: needs either `partitions` or `partitions_per_broker`
{at: 5s, create_topic: views, partitions: 2, partitions_per_broker: 2}
    timeline[1]: has both `partitions` and `partitions_per_broker`; expected only one of the
    two
{at: 5s, add_partitions: clicks}
    timeline[1]: needs either `partitions` or `partitions_per_broker`
{at: 5s, create_topic: views, partitions: 5001}
    timeline[1].create_topic: views gets 5001 partitions; expected at most 5000
{at: 5s, create_topic: views, partitions_per_broker: 2000}
    timeline[1].create_topic: views gets 6000 partitions; expected at most 5000
{at: 5s, add_partitions: clicks, partitions: 20001}
    timeline[1].partitions: 20001 is too large; expected at most 20000
{at: 5s, partition: zookeeper/1, from: zookeeper/1, for: 1s}
    timeline[1].from: 'zookeeper/1' is zookeeper/1 itself; expected the other side
"""
"""An entry of the timeline."""

FIELDS = r"""
{partitions: 6} => {}
    4: clusters.main.topics.clicks: needs either `partitions` or `partitions_per_broker`
name: x => name:
    1: name: is empty; expected text
brokers: 3 => brokers:
    4: clusters.main.brokers: is empty; expected a whole number or a list
brokers: 3 => broker: 3
    4: clusters.main.broker: is not a field here; did you mean 'brokers'?
brokers: 3 => brokers: [{id: 1, prt: 5}]
    4: clusters.main.brokers[0].prt: is not a field here; did you mean 'port'?
consumers: 3 => consumers: [{stream: {}}]
    6: groups.billing.consumers[0].stream: is not a field here; did you mean 'streams'?
name: x => name: 5
    1: name: 5 is not text; put it in quotes
about: y => about: [a]
    2: about: ['a'] is not text
brokers: 3 => brokers: three
    4: clusters.main.brokers: 'three' is not a whole number or a list
brokers: 3 => brokers: 3.5
    4: clusters.main.brokers: 3.5 is not a whole number or a list
brokers: 3 => brokers: [1]
    4: clusters.main.brokers[0]: 1 is not a mapping; expected fields such as id, name, host
brokers: 3 => brokers: [{id: x}]
    4: clusters.main.brokers[0].id: 'x' is not a whole number
{partitions: 6} => 6
    4: clusters.main.topics.clicks: 6 is not a mapping; expected fields such as partitions,
    partitions_per_broker, replicas
brokers: 3 => brokers: 3, zookeeper: {lists_ephemerals: yes}
    4: clusters.main.zookeeper.lists_ephemerals: 'yes' is not true or false
{clicks: 1} => [clicks]
    6: groups.billing.streams: ['clicks'] is not a mapping; expected names with their values
{clicks: 1} => {clicks: one}
    6: groups.billing.streams.clicks: 'one' is not a whole number
{consumers: 3, streams: {clicks: 1}} => 3
    6: groups.billing: 3 is not a mapping; expected fields such as cluster, consumers, ids
name: x => name: a b
    1: name: 'a b' is not a name; expected letters, digits, '.', '_' and '-', no sign at its
    beginning
brokers: 3 => brokers: [{id: 1, host: a_b}]
    4: clusters.main.brokers[0].host: 'a_b' is not a name; expected letters, digits, '.' and
    '-', no sign at its beginning
brokers: 3 => brokers: [{id: 1, starts: nevr}]
    4: clusters.main.brokers[0].starts: 'nevr' is not a duration or 'never'; did you mean
    'never'?
brokers: 3 => brokers: [{id: 1}, {id: 1}]
    4: clusters.main.brokers[1]: broker/1 is there already; give one of the two a `name`
brokers: 3 => brokers: 3, layout: 0.7
    4: clusters.main.layout: 0.7 is a number; put it in quotes: '0.7'
brokers: 3 => brokers: 3, layout: '0.9'
    4: clusters.main.layout: '0.9' is not '0.7' or '0.8'; did you mean '0.8'?
consumers: 3 => consumers: 3, ids: number
    6: groups.billing.ids: 'number' is not 'numbered' or 'drawn'; did you mean 'numbered'?
consumers: 3 => consumers: 3, cluster: man
    6: groups.billing.cluster: 'man' is not a cluster; did you mean 'main'?
{clicks: 1} => {click: 1}
    6: groups.billing.streams.click: there is no such topic; did you mean 'clicks'?
  billing: =>   broker:
    6: groups.broker: is a reserved word; choose another name
brokers: 3 => brokers: -3
    4: clusters.main.brokers: -3 is not a number of brokers, 0 to 1000
brokers: 3 => brokers: 1001
    4: clusters.main.brokers: 1001 is not a number of brokers, 0 to 1000
brokers: 3 => brokers: [{id: 1, port: 70000}]
    4: clusters.main.brokers[0].port: 70000 is too large; expected at most 65535
brokers: 3 => brokers: 3, zookeeper: {servers: 12}
    4: clusters.main.zookeeper.servers: 12 is too large; expected at most 9
{partitions: 6} => {partitions: 6, replicas: 5}
    4: clusters.main.topics.clicks.replicas: 5 is more than there are brokers, 3
consumers: 3 => consumers: 999999999999999
    6: groups.billing.consumers: 999999999999999 is not a number of consumers, 0 to 5000
{clicks: 1} => {clicks: 0}
    6: groups.billing.streams.clicks: 0 is not a number of streams, 1 to 1000
streams: {clicks: 1} => filter: {white_list: '(a'}
    6: groups.billing.filter: topic filter '(a' cannot be used as a regular expression:
    missing ), unterminated subpattern
consumers: 3 => consumers: 3, config: {zookeeper.sesion.timeout.ms: 5}
    6: groups.billing.config.zookeeper.sesion.timeout.ms: zookeeper.sesion.timeout.ms is not
    a setting that these consumers have; did you mean zookeeper.session.timeout.ms?
consumers: 3 => consumers: 3, config: {zookeeper.session.timeout.ms: 5s}
    6: groups.billing.config.zookeeper.session.timeout.ms: zookeeper.session.timeout.ms is
    '5s'; expected a whole number of at least 1
consumers: 3 => consumers: 3, variant: kafka_7
    6: groups.billing.variant: 'kafka_7' is not a variant; did you mean 'kafka_07'?
brokers: 3 => brokers: 3, variant: 7
    4: clusters.main.variant: 7 is not text; put it in quotes
brokers: 3 => brokers: 3, zookeeper: {tick: 0s}
    4: clusters.main.zookeeper.tick: '0s' is too short; expected at least 10ms
brokers: 3 => brokers: 3, zookeeper: {tick: 1us}
    4: clusters.main.zookeeper.tick: '1us' is too short; expected at least 10ms
brokers: 3 => brokers: 3, session_timeout: 0s
    4: clusters.main.session_timeout: '0s' is too short; expected at least 1ms
consumers: 3 => consumers: 3, fetch_every: 0s
    6: groups.billing.fetch_every: '0s' is too short; expected at least 1ms
{partitions: 6} => {partitions: 6, partitions_per_broker: 2}
    4: clusters.main.topics.clicks: has both `partitions` and `partitions_per_broker`;
    expected only one of the two
{partitions: 6} => {partitions: 1000000}
    4: clusters.main.topics.clicks.partitions: 1000000 is too large; expected at most 20000
{partitions: 6} => {partitions: 100000}, b: {partitions: 100000}, c: {partitions: 1}
    4: clusters.main.topics.clicks.partitions: 100000 is too large; expected at most 20000
{partitions: 6} => {partitions: 20000}, b: {partitions: 1}
    3: clusters: there are 20001 partitions in all; expected at most 20000
consumers: 3 => consumers: 3, filter: {white_list: a}
    6: groups.billing: has both `streams` and `filter`; expected only one of the two
streams: {clicks: 1} => filter: {white_list: a, black_list: b}
    6: groups.billing.filter: has both `white_list` and `black_list`; expected only one of
    the two
consumers: 3 => consumers: 3, config: {zk.synctime.ms: 5, zookeeper.sync.time.ms: 6}
    6: groups.billing.config.zookeeper.sync.time.ms: is another name of zk.synctime.ms;
    expected only one of the two
consumers: 3 => consumers: [{id: a}, {id: b}, {id: a}]
    6: groups.billing.consumers[2].id: 'a' is the id of billing/0; expected an id of its own;
    to give one id to several members, set `consumer.id` in their `config`
consumers: 3 => consumers: [{id: c1}, {}]
    6: groups.billing.consumers[1].id: 'c1' is the id of billing/0; expected an id of its own;
    to give one id to several members, set `consumer.id` in their `config`
consumers: 3 => consumers: [{id: c1}, {config: {consumer.id: c1}}]
    6: groups.billing.consumers[1].id: 'c1' is the id of billing/0; expected an id of its own;
    to give one id to several members, set `consumer.id` in their `config`
consumers: 3 => consumers: [{id: a, config: {consumerid: b}}]
    6: groups.billing.consumers[0].config.consumerid: is another name of `id`; expected only
    one of the two
consumers: 3 => consumers: 3, config: {consumer.id: a, consumerid: a}
    6: groups.billing.config.consumerid: is another name of consumer.id; expected only one of
    the two
consumers: 3 => consumers: 3, config: {consumer.id: "a b"}
    6: groups.billing.config.consumer.id: 'a b' is not a name; expected letters, digits, '.',
    '_' and '-', no sign at its beginning, at most 100 characters
"""
"""What stands in the file => what is put in its place; and the line of the message."""

ENDS = r"""
setle: 10s
    setle: is not a field here; did you mean 'settle'?
settle: 10
    settle: 10 is not a duration; expected a number with its unit, such as 10s or 10ms
strict: on
    strict: 'on' is not true or false
strict: yes
    strict: 'yes' is not true or false
work_factor: 0
    work_factor: 0 is too small; expected at least 1
variant: 7
    variant: 7 is not text; put it in quotes
variant: hardend
    variant: 'hardend' is not a variant; did you mean 'hardened'?
expect: holds
    expect: 'holds' is not a mapping; expected names with their values
expect: {hardned: holds}
    expect.hardned: 'hardned' is not a variant; did you mean 'hardened'?
expect: {hardened: hold}
    expect.hardened: 'hold' is not 'holds' or a mapping; did you mean 'holds'?
expect: {hardened: true}
    expect.hardened: true is not 'holds' or a mapping; expected fields such as violated, may, limit
expect: {hardened: {violated: full cover}}
    expect.hardened.violated: 'full cover' is not a list; put a dash before each entry
expect: {hardened: {violated: [ful cover]}}
    expect.hardened.violated[0]: 'ful cover' is not a property; did you mean 'full cover'?
expect: {hardened: {may: [full cover]}}
    expect.hardened: needs `violated`
sometimes: [{event: rebalance end}]
    sometimes[0].event: 'rebalance end' is not a kind of event; did you mean 'rebalance
    failed'?
sometimes: [{event: ended, after: crsh}]
    sometimes[0].after: 'crsh' is not a verb; did you mean 'crash'?
sometimes: {event: ended}
    sometimes: {'event': 'ended'} is not a list; put a dash before each entry
about: again
    about: stands twice; the first is in line 2
sometimes: [{event: ended, node: biling/1}]
    sometimes[0].node: 'biling/1' is not a node of this scenario; did you mean 'billing/1'?
never: [{event: ended, node: stranger}]
    never[0].node: 'stranger' is not a node of this scenario; expected one of: billing/0,
    billing/1, billing/2, broker/0, broker/1, broker/2, zookeeper/1, zookeeper/2,
    zookeeper/3, zookeeper, clicks, clicks/0, …
"""  # noqa: E501
"""A line at the end of the file."""
