"""Logs of brokers: the commands `load` and `activity`.

`load_command` and `activity_command` are the command line. `load` loads logs into a table,
`offsets` compares the table with the offsets of a group, `report` prints both. `activity` runs
the jobs over the events of a web site, which `activity_produce` generates.
"""
