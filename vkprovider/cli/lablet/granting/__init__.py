"""`kubectl lablet grant`: make a user an instructor of a namespace.

* `bindings`: the bindings that it takes, and for whom; without I/O.
* `grant`: the command.
"""
