"""Why there is no connection to a broker."""


class BrokerFault(Exception):  # noqa: N818 (a state of the world)
    """The broker cannot be reached, refuses the client, or the connection ended."""


class TlsFault(BrokerFault):
    """The broker cannot be trusted, or does not speak TLS."""


class LoginRefused(BrokerFault):
    """The broker does not accept user name, password or certificate."""


class TopicRefused(BrokerFault):
    """The broker's access rules do not allow a topic."""
