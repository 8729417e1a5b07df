"""What the parsers raise."""


class ProtocolError(Exception):
    """The client broke the protocol, or a bound: the connection cannot be used any longer."""
