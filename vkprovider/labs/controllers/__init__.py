"""Reconcilers, one package per noun, with the nouns of `labs.pure`: they gather facts, have it decide, and act.

* `console`: consoles and ports of devices, for the kubelet API.
* `lablet`: Pod → lab.
* `session`: sessions of the LDS, and their events.
* `worker`: CMLWorker → Node, and what all lablets of a worker share: its connection and one bulk observation.
* `definition`: LabletDefinition → content, RuntimeClass.
* `claims`: the claims of one worker, written in batches.
* `secrets`: Secrets of the namespace of logins, read when they are needed.
* `counters`: what is counted about lablets; `timeline`: when each Pod reached each stage, if anybody wants to know.

Nothing here decides what a state means; that is `labs.pure`. Nothing here knows HTTP; that is `platform.kube`, `cml`
and `lds`.
"""
