"""The composition root: settings from the environment, the wiring of a replica, and its HTTP page.

* `main`: the process; `settings`, `logs`: the settings from the environment, and the log format.
* `replica`: one replica, its controllers and loops; `metrics`: what is counted of it; `page`: what it serves.
* `kubelet`: the kubelet API of our Nodes; `tunnels`: carriers by the settings.

Nothing below imports this package; it is the only place that knows all of the others.
"""
