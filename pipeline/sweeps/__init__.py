"""Sweeps: a grid of parameters, variants and seeds, run and written down.

Reading order: `grid` (what is run, and how it is cut into chunks), `work` (what one chunk
comes to), `rows` (how that is written), `store` (the folder of a sweep, and why it bears to
be killed), `runners` and `spark` (who does the work), `choosing` (how large a chunk is, and
who is chosen), `conduct` (all of it together), `summing` (what came of it).
"""
