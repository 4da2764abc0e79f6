"""The command line: all commands in sections, with one way for each of them to end.

`main` assembles the commands and runs one; `sections` lists them in groups and suggests the
nearest name for a mistyped one. The commands themselves stand in the folders of their use cases,
as `command.py`.
"""
