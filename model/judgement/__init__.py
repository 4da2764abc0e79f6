"""The judgement of a run: every judge of `watchkeeper.model.properties`, led through a trace.

`judge` is the entry. `expectations` compares a verdict with what a scenario expects; `signature`
groups failures.
"""
