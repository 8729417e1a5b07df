"""What both ends do with the messages, without I/O: the time is an argument, what is to be sent a result.

`calling` is the caller's side of one agent's name, with `outputs` for its link, and `presence` what it knows of the
agents of that name; `events` counts what they report. `answering` is the agent's side, and `memory` the operations that
it remembers. `pieces` splits and joins bodies, `streams` is one end of a stream of bytes, `refusals` the words for what
failed.

Nothing is lost and nothing is executed twice, whatever a carrier loses, doubles, delays or reorders:

* A caller repeats a request, unchanged, until it is answered or its deadline has passed.
* An agent executes an operation once, and repeats its answer. It forgets an operation only when its time is over; from
  then on the request itself is refused as expired.
* A request is for one boot of an agent. If the agent was restarted meanwhile, nobody knows whether it was executed: a
  read is sent to the new boot, once; a command ends with `ConnectionLost`, and its caller looks before giving it
  again.
* A receiver asks for the pieces of a long body, so that a lost one is asked for again and none is sent too early.
* A request of an older epoch than the agent has seen is refused.
"""
