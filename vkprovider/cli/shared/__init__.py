"""What several commands share.

* `lazy`: groups whose subcommands are imported only when they run.
* `cluster`: the options that choose a cluster; `options`: those that choose a namespace and its Pods, and others that
  several commands have; `candidates`: what the shell offers for them. They import no client.
* `place`: the cluster, the namespace and the Pods that options name, and the client that follows from them.
* `pods`: a lablet's Pod: parse its name, read and change it; `devices`: its devices and ports; `batch`: do something
  with several Pods.
* `refusals`: what to do about a refusal of the API server.
* `page`: the provider's page.
* `output`: what commands print; `waiting`: wait for a Pod.
* `clock`: the time by which commands judge and write stamps; `times`: times and durations on the command line;
  `environment`: the settings of a process, and its run.
"""
