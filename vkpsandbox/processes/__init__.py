"""The processes of a sandbox: started once, restarted when they end, found again by a mark in their environment.

* `process`: command, environment, restart rule and state of a process.
* `child`, `supervisor`: one child, and the process that owns all of them.
* `control`: the client of the supervisor's control socket.
* `record`: the file that describes a sandbox.
* `ports`: free addresses and ports; `strays`: processes that a sandbox left behind.
"""
