"""Pod → lab: one key per Pod UID, one step after another.

* `index`: all lablets, and which one a change concerns; `memory`: what is remembered of one, volatile.
* `reconciler`: one key of the queue.
* `turns`: one turn: `factfinder` gathers, `domain.lablet` decides, `steps` acts, `telling` and `statuses` report.
* `portcheck`: whether console ports open; `archive`: the ConfigMaps of what learners leave.
* `exports`: a lab as a file, for downloads.
"""
