"""Why a property is violated: the events of the trace that led there, from the last one back.

A judge says what a violation is about: processes, partitions, znodes (`Subject`). From there
`walk` goes back: what each process did last, what it had read before, what others wrote
meanwhile and why it did not know, whose session ended, and which fault was behind it. `lookup`
finds these events in a trace, `wording` says them, and `chain` has the lines that are shown.
Nothing here depends on which property is violated.
"""
