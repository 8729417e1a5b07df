"""The processes of a sandbox: started once, restarted when they end, found again by a mark in their environment.

* `process`: what a process is: its command, environment, restart rule and state.
* `child`, `supervisor`: one child, and the process that owns all of them.
* `control`: the socket on which the supervisor takes orders.
* `record`: the file that says what a sandbox consists of.
* `ports`: free addresses and ports; `strays`: processes that a sandbox left behind.
"""
