"""The text of scenario and profile files.

`document` reads YAML and keeps the line of every value, after `size_check` has refused input
that would take long. `units` parses durations, rates and sizes. `errors` holds problems and the
sentences about them.
"""
