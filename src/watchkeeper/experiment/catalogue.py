"""Each statement of the design page, with the experiment that measures it."""

from __future__ import annotations

from watchkeeper.experiment.apparatus.rows import Experiment
from watchkeeper.experiment.clients.chain import chaining
from watchkeeper.experiment.clients.heap_pauses import zombies
from watchkeeper.experiment.clients.load_balance import balancing
from watchkeeper.experiment.clients.message_sets import compression, requests
from watchkeeper.experiment.clients.push_and_pull import pushing
from watchkeeper.experiment.clients.repeats import repeating
from watchkeeper.experiment.clients.sendfile import consumers, copying
from watchkeeper.experiment.clients.two_phase_commit import committing
from watchkeeper.experiment.storage.ahead import reading_ahead, writing_behind
from watchkeeper.experiment.storage.disks import reading, writing
from watchkeeper.experiment.storage.double_cache import caching
from watchkeeper.experiment.storage.flush_policies import policies
from watchkeeper.experiment.storage.heaps import overhead, warming
from watchkeeper.experiment.storage.lag import lagging
from watchkeeper.experiment.storage.lock_contention import blocking
from watchkeeper.experiment.storage.log_and_tree import trees, volume

EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            "linear-writes",
            "Six 7200 rpm SATA disks as RAID-5 write about 300 MB/s sequentially and "
            "about 50 kB/s at random: a ratio of nearly 10,000.",
            "One file is written sequentially, another one at random positions.",
            writing,
        ),
        Experiment(
            "read-ahead",
            "Reading ahead fetches large blocks into memory before they are wanted.",
            "A file is read in small pieces, with read-ahead and without.",
            reading_ahead,
        ),
        Experiment(
            "write-behind",
            "Writing behind joins small logical writes to large physical ones.",
            "Small pieces are appended, flushed once at the end, and flushed one by one.",
            writing_behind,
        ),
        Experiment(
            "disk-and-memory",
            "Sequential reads of a disk can be faster than random reads of memory.",
            "Values of four bytes are read in order from the disk, and at random from memory.",
            reading,
        ),
        Experiment(
            "heap",
            "Objects in a heap often take twice the size of their data or more, and collecting "
            "garbage becomes slow and uneven as the heap grows.",
            "Messages are kept as objects until heaps of several sizes are full.",
            overhead,
        ),
        Experiment(
            "warm-up",
            "A cache inside the process is gone after a restart, and 10 GB of it may take ten "
            "minutes to build again; the pagecache is still warm.",
            "A process restarts, with a cache of its own and with the pagecache alone.",
            warming,
        ),
        Experiment(
            "double-caching",
            "A cache inside the process holds what the pagecache holds already; without it the "
            "same memory caches twice as much or more.",
            "A log is read twice, with the pagecache alone and beside a cache in a heap.",
            caching,
        ),
        Experiment(
            "blocking",
            "Reads of a log block neither writes nor each other.",
            "One process appends and four read from the disk, with and without a common lock.",
            blocking,
        ),
        Experiment(
            "retained",
            "The speed of a log does not depend on its size.",
            "A log of up to 1000 GB is written and read at its end.",
            volume,
        ),
        Experiment(
            "b-tree",
            "Appending to a log is O(1); a B-tree becomes slower the more it holds.",
            "Entries are added to a log and to a B-tree of up to 1,000,000,000.",
            trees,
        ),
        Experiment(
            "message-sets",
            "Message sets amortize the cost of a request.",
            "One producer sends sets of 1 to 1000 messages, one request at a time.",
            requests,
        ),
        Experiment(
            "compression",
            "Messages compress poorly one by one, and well when they are compressed together.",
            "Events of a web site are compressed with gzip, in sets of 1 to 1000.",
            compression,
        ),
        Experiment(
            "sendfile",
            "Sending a file to a socket copies the data four times, with two system calls; "
            "sendfile avoids that.",
            "A file is sent by reading and writing, and with sendfile.",
            copying,
        ),
        Experiment(
            "many-consumers",
            "Many consumers of a topic read at nearly the rate of the network, from memory.",
            "Up to 50 consumers read the messages of one producer.",
            consumers,
        ),
        Experiment(
            "flush",
            "Flushing by a number of messages or by time bounds the loss of a host crash.",
            "A log is written with each policy; its host crashes at random times.",
            policies,
        ),
        Experiment(
            "pull",
            "Consumers pull from brokers; in other systems brokers push.",
            "20 MB/s are produced for a fast consumer and one that reads 5 MB/s.",
            pushing,
        ),
        Experiment(
            "push-chain",
            "In systems where data are pushed downstream each node acts as a broker.",
            "Three nodes in a row lead to a consumer that takes 5 MB/s of 20 MB/s.",
            chaining,
        ),
        Experiment(
            "balancing",
            "A layer-4 balancer needs one connection a producer and may balance badly; with "
            "ZooKeeper each request is balanced, new brokers are found, and keys stay together.",
            "Producers of unequal rates send to three brokers; another one joins.",
            balancing,
        ),
        Experiment(
            "exactly-once",
            "Two-phase commits need several round trips and may block; an offset that is stored "
            "beside the result gives each message once without them.",
            "Batches are committed in both ways; then the process dies in the middle of one.",
            committing,
        ),
        Experiment(
            "repeats",
            "A smaller fetch size makes fewer messages that are read twice after a rebalance.",
            "A member of a group is killed, with several sizes of a fetch and times of a commit.",
            repeating,
        ),
        Experiment(
            "zombies",
            "Collecting garbage becomes slow as the heap grows.",
            "A consumer of a simulated group stands still for as long as its heap is collected.",
            zombies,
        ),
        Experiment(
            "lag",
            "Data are copied into the pagecache once, and read from there many times.",
            "A consumer follows the end of a log at several distances.",
            lagging,
        ),
    )
}
"""Experiments, by name."""
