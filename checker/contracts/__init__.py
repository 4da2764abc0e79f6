"""What a program has to keep to be searched, and how a breach is found.

`contracts` holds the errors and their texts. `determinism` catches calls of clocks and
random numbers while a turn runs; `set_iteration` and `set_syntax` are a lint that finds
iteration over sets in the source; `source_lines` tells a program's own lines from Python's.
"""
