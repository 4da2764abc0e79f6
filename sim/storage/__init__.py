"""The file system of a simulated host, from a program's effect down to the disk.

Read in this order: `storage` answers the effects of logs (`watchkeeper.model.log.storage`;
`host_effects` has those of experiments). `filesystem` is the disk with its files: `files`,
their `file_contents`, and the `allocator` of their blocks. `pagecache` holds pages in
memory, `page_reads` and `readahead` fill it, `writeback` and the `journal` empty it to the
disk. `crash` decides what a power loss leaves of a file.
"""
