"""The properties that a run is judged by, from its trace alone.

Reading order: `verdicts` (holds, violated, unknown, with evidence), `ownership` (always),
`quiescence` and `at_quiescence` (at rest), `progress` (eventually, and the work bound).
`messages` adds `delivery` and `starvation` if brokers store messages. `control_plane` has those
of clusters with a controller. `watchkeeper.model.judgement` leads all of them through a run.
"""
