"""How a program of ours lives beside an API server; nothing here knows labs.

* `wellknown`: names on the wire that every program of ours uses: the API group, Kubernetes' own labels, and those of a
  replica.
* `objects`: slim structs of the Kubernetes objects that we read.
* `environment`: slim structs of a Pod as far as its environment variables are concerned.
* `errors`: every error of vkprovider, by what the caller should do about it.
* `reasons`: what a reason is: a word, its explanation, and the traits that decisions depend on; the reasons of a start.
* `messages`: a reason with its message, and words of messages: singular and plural, lists of which only the first are
  shown.
* `rights`: who asks, and a right in the cluster: a verb on a resource, or on a path, as an access review names it.
* `times`: times as Kubernetes writes them, and as people read them.
* `quantities`: Kubernetes quantities as integers: millicores and bytes.
* `selectors`: label selectors as kubectl writes them, for objects whose labels the API server does not select by.
* `packing`: text that is packed into the `binaryData` of a ConfigMap: gzip, then base64.
* `histogram`: a histogram in plain numbers: counting costs half a microsecond, everything else is computed when it is
  read.
* `backoff`: retry delays: exponential, capped, jittered by a random number that the caller draws.
* `ports`: port numbers: who holds which, and the ConfigMap in which they are stored, for every kind of owner.
* `leases`: leases: who lives and who owns a key, judged without trust in clocks; and which replica should own which
  key.
* `settings`: settings that every program of ours shares, and how a program reads its own from the environment.
* `rereading`: what the files hold that settings name: passwords, tokens, certificates; read again when one is replaced.
* `wildcardhosts`: hosts under a wildcard, each an origin of its own for browsers.
* `siteaddress`: at which address of a site a browser has made a request, behind whatever proxy.
* `logs`: structured logs: JSON lines in a cluster, colours on a terminal; libraries' lines look like ours.
* `kube`: the Kubernetes shell: all communication with an API server, and no decisions.
* `runtime`: what every process needs that acts under a fence; nothing here knows labs or workers.
* `http`: what every server shares: the page of a process, and the kubelet API of Nodes.
* `replica`: one replica of a program from its start to its end: listen, reach the API server, build, run, stop.
* `concurrency`: work on many things, a few at a time; and the signals that end a process.
* `shipped`: files that ship with vkprovider beside its code.
"""
