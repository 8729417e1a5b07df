"""The agent beside a worker: carries out what replicas send through a tunnel.

* `upstream`: CML as the agent reaches it, logged in with the agent's own credentials.
* `watching`: looks at CML, so that nobody has to ask for changes from afar.
* `carrier`: the way to the replicas, by the settings.
* `settings`: its settings; `process`: the process: settings, carrier, state, signals.
"""
