"""Commands. A command parses its arguments, calls one function below and prints; it decides nothing.

* `main`: the command `vkprovider`: subcommands are imported only when they run, so that `--help` is quick.
* `programs`: `vkprovider run`, `agent`, `mux`, `portal` and `relay`: one process each, with settings from the
  environment.
* `prepull`: `vkprovider prepull`: have ordinary Nodes pull images.
* `crds`: `vkprovider crds`: print the custom resource definitions, or write them to a directory.
* `doctor`: `vkprovider doctor`: check a cluster and its workers, one line per fault.
* `lablet`: `kubectl lablet`: a kubectl plugin, found by its name `kubectl-lablet` on PATH.
* `checkup`: `vkprovider doctor` and `kubectl lablet doctor`: decide what is read and asked, and pass it to the checks.
* `environment`: a process: its settings, read from the environment, names there that nobody reads, and its run.
* `shared`: what several commands share.
"""
