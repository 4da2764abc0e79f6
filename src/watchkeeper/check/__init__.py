"""Every interleaving of a scenario: the commands `explore`, `replay` and `conform`.

`command` is the command line, `limits` are those of a search. `check` searches a scenario
within its bounds, `report` prints what the search finds, and `folder` writes the counterexample.
`replay` follows a counterexample or a random schedule step by step, and `replay_file` reads it
from a file. `replicas` and `brokers` search the replicas of one partition, and brokers that elect
a controller; `control_plane_command` is their command line. It searches groups that keep their
offsets in Kafka, too.
"""
