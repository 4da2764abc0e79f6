"""Exploration: every order of operations, notifications and faults that a bound allows.

Reading order: `system` (what can be searched), `search` (how), `unfolding` (how a coroutine
becomes a graph), `local` and `moves` (what one process can do next), `cluster` (how a plan
becomes a system), `judging` and `liveness` (what is asked of the states), `story` (how a
path is told). Users' own protocols come in by `own` and `own_system`; `promises`, `guards` and
`set_order` say why a program cannot be searched.
"""
