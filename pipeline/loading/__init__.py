"""Loads logs into a table, in parallel, and keeps the progress in the table itself.

`load` plans what a table lacks and sums up, `load_task` is the work of one task, `table` the
folder and its recovery, `commits` the names of files, which hold the progress."""
