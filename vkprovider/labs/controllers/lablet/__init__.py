"""Pod → lab: one key per Pod UID, one step after another.

* `index`: all lablets, and which one a change concerns; `state`: the record of one, with one writer for each field.
* `reconciler`: one turn: gather, decide, execute, record, publish; the only writer of memory.
* `gather`: the facts, without a call or a write; `effects`: one coroutine per step, which returns an outcome;
  `turnslots`: how many turns await an outside system at once.
* `environment`: the variables of the Pod, read and resolved for the import.
* `publish`: the Pod's status, and Events.
* `passes`: all of them again, from time to time; `recovery`: lost claims, rebuilt from the labs of the worker.
* `renewals`: which warm lablets take up new content.
* `ports`: whether they open, which ones other CMLWorkers' labs have, and how they are lent to muxes, a package.
* `archive`: the ConfigMaps of what learners leave.
* `exports`: a lab as a file, for downloads.
"""
