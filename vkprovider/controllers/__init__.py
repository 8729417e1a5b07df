"""Reconcilers, one per noun: they gather facts, ask the domain, and carry out one step at a time.

* `ownership`: which nodes this replica may act for, and the proof of it at every side effect.
* `definitions`: LabletDefinition → content, RuntimeClass. `refreshing` reads `sources` and `packages`, `versions`
  stores what they hold, `runtimeclasses` charges for it.
* `workers`: CMLWorker → Node: each `worker` has one bulk observation for all its lablets (`observing`) and a Node
  (`nodes`).
* `claimstore`: the claims of one worker, written in batches.
* `lablets`: Pod → lab: `memory` of each, `turns` taken, `steps` carried out, `telling` of it (`statuses`, Events).

Nothing here decides what a state means; that is `domain`. Nothing here knows HTTP; that is `kube` and `cml`.
"""
