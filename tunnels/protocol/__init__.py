"""What both ends do with the messages, without I/O: the time is an argument, what is to be sent a result.

Nothing is lost and nothing is executed twice, whatever a carrier loses, doubles, delays or reorders:

* `calling`: the caller's side of one agent's name: requests until they are answered.
* `presence`: what a caller knows of the agents of one name: which boot is there, and their events in order.
* `answering`: the agent's side: each operation is executed once, and its answer sent as often as it is asked for.
* `pieces`: bodies in pieces: the first travels with its request or response, the receiver asks for the rest.
* `streams`: one end of a stream of bytes: ordered, complete, with a bounded buffer in each direction.
* `refusals`: the words of a `Refusal`, and the errors that they stand for.
"""
