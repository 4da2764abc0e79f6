"""Every statement of the design page that is measured here."""

from __future__ import annotations

from sim.experiments.batching import compression, requests
from sim.experiments.disks import reading, writing
from sim.experiments.flushing import policies
from sim.experiments.heaps import overhead, warming
from sim.experiments.lagging import lagging
from sim.experiments.pushing import pushing
from sim.experiments.retaining import trees, volume
from sim.experiments.rows import Experiment
from sim.experiments.sending import consumers, copying
from sim.experiments.sharing import blocking

EXPERIMENTS = {
    one.name: one
    for one in (
        Experiment(
            "linear-writes",
            "Six 7200 rpm SATA disks as RAID-5 write about 300 MB/s in line and about 50 kB/s at "
            "random: nearly 10,000 times as much.",
            "A file is written from its beginning, and another one at places of chance.",
            writing,
        ),
        Experiment(
            "disk-and-memory",
            "A disk that is read in line can be faster than memory that is read at random.",
            "Values of four bytes are read from the disk in line, and from memory at random.",
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
            "A process is started again, with a cache of its own and with the pagecache alone.",
            warming,
        ),
        Experiment(
            "blocking",
            "Reads of a log block neither writes nor each other.",
            "One appends, and four read from the disk, with and without a lock for all.",
            blocking,
        ),
        Experiment(
            "retained",
            "How fast a log is does not depend on how much it keeps.",
            "A log is written and read at its end, beside up to 1000 GB that were kept.",
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
            "Sets of messages make up for the cost of a request.",
            "One producer sends sets of 1 to 1000 messages, one request at a time.",
            requests,
        ),
        Experiment(
            "compression",
            "Messages compress poorly one by one, and well when they are compressed together.",
            "Events as a site writes them are compressed with gzip, in sets of 1 to 1000.",
            compression,
        ),
        Experiment(
            "sendfile",
            "From a file to a socket data are copied four times, by two system calls; sendfile "
            "avoids that.",
            "A file is sent by reading and writing, and with sendfile.",
            copying,
        ),
        Experiment(
            "many-consumers",
            "Many consumers of a topic read at nearly the rate of the network, from memory.",
            "Up to 50 consumers read what one producer writes.",
            consumers,
        ),
        Experiment(
            "flush",
            "Flushing every so many messages, or seconds, bounds what a crash of the host takes.",
            "A log is appended to with each policy; its host crashes at moments of chance.",
            policies,
        ),
        Experiment(
            "pull",
            "Consumers pull from brokers; in other systems brokers push.",
            "20 MB/s are produced for a fast consumer and one who takes 5 MB/s.",
            pushing,
        ),
        Experiment(
            "lag",
            "Data are copied into the pagecache once, and read from there again and again.",
            "A consumer follows the end of a log at several distances.",
            lagging,
        ),
    )
}
"""Experiments, by name."""
