"""Consoles of devices: what stands at one, and how a command is typed at its prompt.

* `manners`: how kinds of devices talk: prompts, pagers, questions; `screen`: output as a terminal would show it.
* `words`: those of a command, as a line; what asks for a shell, or for files.
* `writers`: who types, and who takes over from whom.
* `dialogue`: one command, from waking the line to the prompt after its output.
* `history`: CML's console log as lines with times; `ports`: where a port of a Pod leads.
* `activity`: when somebody typed, or logged in, as a report of the Pod.
"""
