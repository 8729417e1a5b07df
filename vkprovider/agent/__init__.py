"""The agent beside a worker: carries out what replicas send through a tunnel.

* `upstream`: CML as the agent reaches it, logged in with the agent's own credentials.
* `process`: the process: settings, carrier, state, signals.
"""
