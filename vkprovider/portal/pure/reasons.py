"""Reasons of user labs: why one is ended, and why one has failed."""

from vkprovider.platform.reasons import Reasons


class UserLabReason(Reasons):
    """Words in the record of a user lab."""

    DELETE_REQUESTED = ("DeleteRequested", "A user, an instructor or a hub asked for the deletion of the lab.")
    TIME_OVER = ("TimeOver", "The time of the user lab is over, and its work is collected.")
    NEVER_OPENED = (
        "NeverOpened",
        "The user lab was ready, and nobody opened it within VKPROVIDER_PORTAL_IDLE_SECONDS.",
        "Ask for a lab again.",
    )
    SECOND_LAB = (
        "SecondLab",
        "The user has another lab, so that this one is deleted: a replica of the portal wrote after it was overtaken.",
    )
    POD_ENDED = ("PodEnded", "The user's lab has ended, such as by the end of its session.")
    START_TIMED_OUT = (
        "StartTimedOut",
        "The lab was not ready within VKPROVIDER_PORTAL_START_TIMEOUT_SECONDS after its Pod was created.",
        "See the last lines of the lab's story; ask for a lab again. Raise the setting if labs boot longer than that.",
    )
    POD_REFUSED = (
        "PodRefused",
        "The API server refuses an object of the lab, such as by a quota or a policy.",
        "Have an admin correct what the message names; ask for a lab again.",
    )
    LAB_FAILED = (
        "UserLabFailed",
        "The Pod of the lab has failed; the message has its reason.",
        "Look that reason up on this page; ask for a lab again.",
    )
    POD_GONE = (
        "PodGone",
        "Somebody else deleted the Pod of the lab.",
        "Ask for a lab again.",
    )
    DELETE_TIMED_OUT = (
        "DeleteTimedOut",
        "The lab was not gone within VKPROVIDER_PORTAL_DELETE_TIMEOUT_SECONDS; it still goes when it can.",
        "Look why the Pod stays, for instance because its worker is silent; a finalizer may keep the namespace.",
    )
    HELD = (
        "UserLabHeld",
        "The lab of a user was gone for five minutes, and finalizers of others held its Pod; the portal removed them.",
        (
            "The message names them. A program that needs its finalizer for longer must leave user labs alone, whose "
            "namespaces have the label vkprovider.io/portal."
        ),
    )
    TAKEN_OVER = (
        "UserLabTakenOver",
        "A replica of the portal that had the lab of a user in hand is silent; another one goes on with it.",
        "If it happens again and again, look at the log of that replica.",
    )
