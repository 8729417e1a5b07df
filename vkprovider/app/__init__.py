"""The composition root: settings from the environment, the wiring of each process, and its HTTP page.

* `main`: the process; `settings`, `logs`: the settings from the environment, and the log format; `tables`: the tables
  that an admin may give in files.
* `provider`: the provider, as a list of parts; `base`: what its `parts` share, such as `informers` and `queues`.
* `metrics`: what is counted; `page`: where the page listens.
* `kubelet`: the kubelet API of our Nodes; `tunnels`: carriers by the settings.

Nothing below imports this package; it is the only place that knows all of the others.
"""
