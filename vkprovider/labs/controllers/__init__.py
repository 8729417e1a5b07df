"""Reconcilers, one package per noun, with the nouns of `labs.pure`: they gather facts, have it decide, and act.

* `console`: consoles and ports of devices, as the kubelet API offers them: `devices.LabletDevices` implements
  `spi.Devices`.
* `lablet`: Pod → lab: one key per Pod UID, one step after another.
* `session`: sessions of the Lab Delivery System: `sessions` calls it, `inbox` stores its events, `strays` ends lost
  sessions.
* `worker`: CMLWorker → Node, and what all lablets of a worker share.
* `definition`: LabletDefinition → content, RuntimeClass.
* `claims`: the claims of workers, one ConfigMap per worker.
* `secrets`: secrets of the namespace of logins, read one by one when they are needed; nothing of them is kept.
* `counters`: what is counted about the lablets of a replica, and when each Pod reached each stage of its way.

Nothing here decides what a state means; that is `labs.pure`. Nothing here knows HTTP; that is `platform.kube`, `cml`
and `lds`.
"""
