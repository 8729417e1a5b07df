"""The stages of a lablet, a function each: what to do next, and what to report meanwhile. None calls another.

* `start`: from a Pod to a booted lab: the claim, the import, the notes, the start of its devices.
* `close`: the end of a learner's time, and of a lablet: the work is collected, the lab is taken down.
* `unsure`: a lab that cannot be seen, shows nothing to go by, or whose ports are unknown: nothing is done that could
  harm.
* `pause`: a lab that is stopped on request: kept for a while, or wiped to be started afresh.
* `serve`: a lab that has booted: its learner works, a lent lablet is given back, new content is taken up, some
  devices have stopped.
"""
