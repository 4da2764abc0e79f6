"""What every command shares: options, exit codes, output, interrupts.

`options` has the shared options, `credentials` those of a connection to ZooKeeper. `exit` ends a
command by a `Stop` with an exit code and a message; `extras` names the extra of a missing
library. `output` survives a reader that closes its pipe, `progress` shows a line on a terminal,
`signals` handles Ctrl-C and SIGTERM, `suggestion` knows the nearest name. Nothing here knows a
command.
"""
