"""What several commands share.

* `lazy`: groups whose subcommands are imported only when they run, so that `--help` and completion are quick.
* `options`: the options that commands of `kubectl lablet` share, as kubectl has them.
* `candidates`: what the shell offers for an argument: the names that the cluster or the kubeconfig has, as kubectl
  reads them.
* `place`: the cluster, the namespace and the Pods that the options of a command name, and the client that follows from
  them.
* `pods`: a lablet's Pod, for the commands of `kubectl lablet`: find it, wait for it, its devices and ports.
* `batch`: do something with one lablet, with several, or with all that a label selects.
* `refusals`: what to do about a refusal of the API server: whom to ask, for which role, with which command.
* `page`: the provider's page, for commands that ask it.
* `output`: what commands print: tables, formats of `-o`, progress, and what a terminal can do.
* `times`: times and durations on the command line.
* `clock`: the time by which a command judges and writes stamps: the API server's, for the clock of a laptop may be
  wrong.
"""
