"""Traces judged a second time: the command `analyze`.

`command` is the command line. `runs` finds the runs in the given folders, `analyze` compares the
verdicts of `watchkeeper.pipeline.analysis` with those of the runs, `report` prints the result,
and `tables` its measures.
"""
