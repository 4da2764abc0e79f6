"""Pages with one chart: by our own scripts, and by each library that could draw it.

`libraries` says what each library is installed by and how its page is driven; the programs beside
it write the page, each in the environment of its library. They are given a file with the series
and the file to write.
"""
