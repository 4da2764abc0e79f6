"""The properties that a run is judged by, from its trace alone.

Reading order: `verdicts` (holds, violated, unknown, with evidence), `ownership` (always),
`quiescence` and `at_quiescence` (at rest), `progress` (eventually, and the work bound).
`messages` adds `delivery` and `starvation` if brokers store messages, `group_offsets` those of
offsets in Kafka. `control_plane` has those of clusters with a controller; `evidence` is what a
judge has seen. `watchkeeper.model.judgement` leads all of them through a run.
"""
