"""The model: the whole system as pure Python, without I/O, clock, randomness or threads.

Reading order:

- `actor/`: programs, their effects and the notifications they receive.
- `zookeeper/`: the sequential specification of ZooKeeper; `registry/`: paths and payloads.
- `group/`: the consumer group protocol; `broker/`: registration and request handling.
- `log/` and `clients/`: the log of a broker, producers and consumers of messages.
- `wire_08/`, `log_08/` and `broker_08/`: protocol, logs and request handling of Kafka 0.8.
- `plan/` and `programs`: what a world runs; `nemesis/`: the timeline at work.
- `trace/`, `properties/`, `delivery/`, `counterexample/`: what happened, and the verdicts.
- `mutants/`: programs with one mistake each, which the checks must catch.
- `audit/`, `calibration/`, `sweep_summary`: results of audits, measurements and sweeps.
"""
