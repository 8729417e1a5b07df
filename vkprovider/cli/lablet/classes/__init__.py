"""A whole class at once: `kubectl lablet assign --from-file`.

* `roster`: the list of learners; `ledger`: what is left to do, a pure function; `giving`: the command.
"""
