"""What a newcomer does: `environment` runs its commands, `tasks` are twelve that should work.

`mistakes` are those that newcomers make, and `interrupts` are signals at each stage of a command.
"""
