"""The audit of a live cluster: a reading of its registry, judged, printed, measured and served.

`audit` reads and judges, `report` prints, and `metrics` has the numbers for Prometheus. `watch`
is the command, once or again and again; `server` serves metrics and health over HTTP.
"""
