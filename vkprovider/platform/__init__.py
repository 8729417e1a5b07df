"""How a program of ours lives beside an API server; nothing here knows labs.

* `wellknown`: the API group, Kubernetes' own labels, and those of a replica; `objects`: slim structs of Kubernetes
  objects; `environment`: those of a Pod's environment variables.
* `errors`: every error, by what its caller should do; `reasons`: what a reason is; `messages`: one with its message.
* `times`, `quantities`, `wording`, `selectors`, `packing`, `histogram`: Kubernetes' times and quantities, words of
  messages, label selectors, text in a ConfigMap, a histogram in plain numbers.
* `backoff`: delays of retries; `ports`: port numbers and who holds them; `leases`: who lives, and who owns a key. Pure.
* `settings`: settings that all programs share; `rereading`: files that settings name; `logs`: structured logs.
* `kube`: the API server; `runtime`: a process that acts under a fence; `http`: what every server shares.
* `concurrency`: work on many things, a few at a time; `shipped`: files that are installed beside the code.
"""
