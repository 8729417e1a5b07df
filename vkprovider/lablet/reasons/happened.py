"""Reasons of a Pod's Events, conditions and last states."""

from vkprovider.platform.reasons import Reasons, Trait


class Happened(Reasons):
    """Events, conditions and last states of a Pod that report what happened."""

    IMAGE_CHANGE_IGNORED = (
        "ImageChangeIgnored",
        "The image of a bound Pod was changed; the lablet keeps the version that it began with.",
        "Change the image in the Pod's template, or delete the Pod.",
    )
    FIELD_IGNORED = (
        "FieldIgnored",
        "The Pod has fields that mean nothing to a lablet, such as volumes, ports or limits; they are ignored.",
        "Remove them from the Pod's template, unless a quota or a policy of the cluster asks for them.",
    )
    READINESS_GATES_NOT_READY = (
        "ReadinessGatesNotReady",
        (
            "All devices booted, but a condition that `spec.readinessGates` of the Pod names is not True: the Pod is "
            "not Ready, so that no Service leads to it."
        ),
        "See why what writes the condition does not, such as a load balancer's controller, or remove the gate.",
    )
    USERNAME_RESTORED = (
        "UsernameRestored",
        "`vkprovider.io/username` was changed or removed while the lablet has a learner, and was put back.",
        "To give the lablet to another learner, end the session first: `kubectl lablet release POD`.",
    )
    ANNOTATION_INVALID = (
        "AnnotationInvalid",
        "An annotation of the Pod cannot be read; it counts as not set.",
        "Write it as the message says.",
    )
    RESET = ("Reset", "The lab was wiped and started again on request (last state).", "", Trait.ASKED_FOR)
    SESSION_READY = ("SessionReady", "The learner's session exists and knows the devices.")
    SESSION_ARCHIVED = ("SessionArchived", "The learner's session is over for good.")
    TIMESLOT_CHANGED = (
        "TimeslotChanged",
        "`vkprovider.io/timeslot-end` was changed, and the learner's session has the new end, too.",
    )
    TIMESLOT_NOT_CHANGED = (
        "TimeslotNotChanged",
        (
            "`vkprovider.io/timeslot-end` was changed, but the Lab Delivery System keeps the end that the session has: "
            "prolonged, the learner's time ends there all the same; shortened, the lablet ends in time."
        ),
        "Do what the message says; without an answer the LDS is asked again.",
    )
    GRADED = ("Graded", "The learner's work was graded.")
    COLLECTED = ("Collected", "The learner's work was stored; get it with `kubectl lablet configs POD`.")
    NOT_KEPT = (
        "NotKept",
        "The configurations of some devices could not be read before the lab was stopped; the message says why.",
        "Those of the other devices are stored. Look into the worker's own logs.",
    )
    KEPT_DROPPED = (
        "KeptDropped",
        "The stored work of a lablet was deleted before its time, because too much is stored.",
        "Get work with `kubectl lablet configs POD` in time, or raise VKPROVIDER_KEPT_BYTES_MAX.",
    )
    CREATED = ("Created", "The lab was imported.")
    IMPORT_WARNED = (
        "ImportWarned",
        "CML imported the lab and warns of something in it; the message is CML's. A device of it may not start.",
        "Correct the topology, or add what the worker lacks, such as a node definition or an image, in CML.",
    )
    STARTED = ("Started", "The start of the lab was requested.")
    READY = ("Ready", "All devices booted.")
    RECOVERED = ("Recovered", "All devices booted again after a restart.")
    BACK_OFF = (
        "BackOff",
        "A recovery did not last; the next one waits longer.",
        "Look at the device's console in CML.",
    )
    ADOPTED = ("Adopted", "After a crash of the provider, the lab of this Pod was found on the worker.")
    KILLING = ("Killing", "The Pod was deleted; its lab is being removed.")
    COMPLETED = ("Completed", "The lablet ended on request, or at the end of the learner's time; phase Succeeded.")
    PASSED = ("Passed", "The learner's work was graded and passed; phase Succeeded, exit code 0.")
    SESSION_STARTED = ("SessionStarted", "The learner has logged in.")
    SESSION_ENDED = ("SessionEnded", "The learner's session has ended; the work is collected.")
    TIMESLOT_ENDING = (
        "TimeslotEnding",
        "The learner's timeslot ends soon; each open console shows it, too.",
        "`kubectl lablet extend` gives more time.",
        Trait.ANNOUNCED,
    )
    TIMESLOT_ENDED = ("TimeslotEnded", "The learner's timeslot is over; the work is collected.")
    CONSOLE_OPENED = (
        "ConsoleOpened",
        "A caller's first session with the lablet through the kubelet API: attach, exec or port-forward.",
    )
    COLLECTING = ("Collecting", "Collecting the learner's work was requested.")
    STOPPING = ("Stopping", "Stopping the lab was requested.")
    BACK_TO_POOL = ("BackToPool", "The learner's time is over, and the lablet goes back to its pool as a warm one.")
    DELETED = ("Deleted", "The Pod was deleted before its end, and a finalizer keeps the object.")
    POD_COMPLETED = ("PodCompleted", "Condition Ready of a Pod with phase Succeeded.")
    POD_FAILED = ("PodFailed", "Condition Ready of a Pod with phase Failed.")
    UNSCHEDULABLE = (
        "Unschedulable",
        "The scheduler finds no Node for a lablet; the message is from it.",
        "Add workers of its environment, or wait until lablets end.",
    )
