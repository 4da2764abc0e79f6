"""Files behind the storage effects of a log.

`file_storage` performs the effects on the files of a folder, with descriptors from `fd_cache`.
`host_crash` records what is synced and emulates the loss of a host; `metrics` adds counters to
it, with the page counts of `pagecache`. Each storage class extends the one before.
`write_back` writes old pages to the disk, as the kernel does; `folder_lock` lets one process at a
time write.
"""
