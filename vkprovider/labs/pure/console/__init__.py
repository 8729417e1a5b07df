"""Consoles of devices: what stands at one, and how a command is typed at its prompt.

* `manners`: how kinds of devices talk at their consoles, by node definition.
* `history`: the output of a console as a terminal shows it, and CML's console log as lines with times.
* `words`: the words of `kubectl exec`: a line to type, a shell that a person wants, or files that no console carries.
* `writers`: who types at a console, and when the learner of a lablet was last active.
* `dialogue`: one command at a console: wake the line, await the prompt, type, turn pages, end at the next prompt.
* `links`: how people name a link, and the packets of a capture's file that grows.
* `ports`: where a port of a Pod leads: an allocated port of the worker, or a port inside a device as the template names
  it.
"""
