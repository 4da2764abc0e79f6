"""Administrative changes of a 0.8 cluster, each planned as a value before anything is written.

plan            what would be written, in which order and under which conditions; refusals
validation      names, brokers and replicas that a request may have
placement       which brokers replicate which partition: the shipped algorithm and its extensions
topic_settings  the settings that a topic may override
topics          creation, added partitions, requests for deletion
reassignment    moves by a file, to brokers and off brokers, and how far they are
election        requests that preferred replicas lead
configuration   settings of a topic, with the notification of its brokers
auto_creation   topics that a broker creates because a client wants them
description     what a cluster has: leaders, ISRs, and what is amiss with them

Everything is computed from a `ControlPlane` (in `model/audit`), and nothing is written. One
transaction carries a plan out: `real/client/transaction.py`.
"""
