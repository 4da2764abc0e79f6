"""The properties that a run is judged by, from its trace alone.

Reading order: `verdicts` (holds, violated, unknown, with evidence), `judge` (all properties of a
run), `ownership` (always), `quiescence` and `at_quiescence` (at rest), `progress` (eventually,
and the work bound). `messages` adds `delivery` and `starvation` if brokers store messages.
`expectations` compares a verdict with what a scenario expects; `signature` groups failures.
"""
