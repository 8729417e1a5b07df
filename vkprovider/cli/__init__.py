"""Commands. A command parses its arguments, calls one function below and prints; it decides nothing.

* `main`: the command `vkprovider`, with `run`, `agent`, `crds` and `doctor`; `cluster`: options of those that use a
  cluster.
* `lablet`: the plugin `kubectl lablet`, with `lablet_acts` (stop, start, collect, reset), `lablet_approve`,
  `lablet_assign`, `lablet_configs`, `lablet_console` (console, forward), `lablet_login`, `lablet_ports`,
  `lablet_refresh` and `lablet_release`.
* `lablet_pods`: a lablet's Pod, for these; `lablet_times`: times and durations on the command line.
"""
