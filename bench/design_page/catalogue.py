"""Every statement of the design page that is measured here."""

from __future__ import annotations

from bench.design_page.batching import compression, requests
from bench.design_page.disks import reading, writing
from bench.design_page.flushing import policies
from bench.design_page.heaps import overhead, warming
from bench.design_page.lagging import lagging
from bench.design_page.pushing import pushing
from bench.design_page.retaining import trees, volume
from bench.design_page.rows import Experiment
from bench.design_page.sending import consumers, copying
from bench.design_page.sharing import blocking

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
            "lag",
            "Data are copied into the pagecache once, and read from there many times.",
            "A consumer follows the end of a log at several distances.",
            lagging,
        ),
    )
}
"""Experiments, by name."""
