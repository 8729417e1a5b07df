"""The agent beside a worker: carries out what replicas send through a tunnel.

* `upstream`: CML as an agent reaches it.
* `watching`: looks at CML beside the agent, so that a change crosses the tunnel as one event and nobody asks for it
  from afar.
* `process`: the process of an agent: open CML and the way to the replicas, run, finish what is in hand.
* `settings`: settings of an agent: where it dials, and the worker beside it.
"""
