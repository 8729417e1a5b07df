"""Commands. A command parses its arguments, calls one function below and prints; it decides nothing.

* `main`: the command `vkprovider`, with `run`, `agent`, `mux`, `portal`, `relay`, `crds` and `doctor`.
* `lablet`: the plugin `kubectl lablet`, a package with a module for each of its commands.
* `checkup`: what the doctors read and ask, a package; `settings`: variables that nobody reads.
* `shared`: what several commands share: options, tables, waiting, a lablet's Pod.
"""
