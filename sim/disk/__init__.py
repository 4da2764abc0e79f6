"""Simulated disks, and the costs of the host around them.

`models` has a row for each kind of disk, `disk` serves requests on the calendar as its row
says, `scheduler` orders and merges the requests that wait. `raid5` makes one disk of
several. `host_costs` has what a system call, a copy and the network cost a thread.
"""
