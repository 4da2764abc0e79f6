"""Stores that keep results together with the positions behind their messages.

`sqlite` uses one database; `segments` writes files as a search index does, in the format of
`segment_file`. `of_member` adapts both to the members of a live run.
"""
