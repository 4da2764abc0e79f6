"""The picture of reassignments: how each partition moved from its old brokers to new ones.

`wording` says each step in a sentence, `layout` computes what is where, and `png` draws it; what
it shows is in `facts/control_plane`.
"""
