"""Settings of a simulated LDS, and the contents of its state file."""

import msgspec

from vkpsim.lds.model import Event, Form, Session


class LdsSettings(msgspec.Struct, kw_only=True, frozen=True):
    """Settings of an LDS.

    Attributes:
        version: Its release.
        token: The bearer token that clients must show; empty accepts every client.
        capacity: Maximum number of sessions that are not archived.
        client_keys: Whether a create with the client key of a live session answers that session.
        owners: Whether sessions record who made them.
        timeslots: Whether the timeslot of a session can be changed.
        end_timeslots: Whether a session ends when its timeslot does.
        forms: The forms in its store; empty means every form.
        seed: Of faults and verdicts.
    """

    version: str = "1.0.0"
    token: str = ""
    capacity: int = 1000
    client_keys: bool = True
    owners: bool = True
    timeslots: bool = True
    end_timeslots: bool = True
    forms: tuple[str, ...] = ()
    seed: int = 0


class Snapshot(msgspec.Struct, kw_only=True):
    """The contents of the state file."""

    sessions: dict[str, Session]
    made: int
    capacity: int
    forms: dict[str, Form]
    undelivered: list[Event] = []
