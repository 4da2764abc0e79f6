"""Sweeps: a grid of parameters, variants and seeds, run and stored.

Reading order: `grid` (cells, seeds, chunks), `chunk` (the work of one chunk), `rows` (a row a
run), `store` (the folder, and its recovery after a kill), `runners` and `spark` (who does the
work), `runner_choice` (chunk size and runner), `run` (a whole sweep), `summary` (its result),
`trace_sampling` (traces that are kept), `branches` (when a failure became inevitable).
"""
