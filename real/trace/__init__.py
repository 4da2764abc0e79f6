"""The trace of a live run.

`writer` writes the rows of one process into a file; `write_events` describes what committed
writes changed; `merge` puts everything into one ordered trace. `merge` explains how times of
different sources are aligned.
"""
