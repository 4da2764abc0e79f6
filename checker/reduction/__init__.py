"""Fewer states for the same verdict.

`reduction` holds the theory and the vectorised algorithm: partial-order reduction with ample
sets of one actor. `footprints` says which parts of the registry a process may still read and
write; `abstraction` maps processes that behave alike to one of them.
"""
