"""Child processes that cannot outlive this process.

`child_process` starts a command under a watchdog and sends signals to it; `end_with_parent`
there is for processes that are started without one. `watchdog` is the program that starts
the command and kills it when its pipe closes. Read `child_process` first.
"""
