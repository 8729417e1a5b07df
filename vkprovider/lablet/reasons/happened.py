"""Reasons of a Pod's Events and last states, of its environment variables, and of refused consoles."""

from typing import Final

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
    DEVICE_REQUESTED = ("DeviceRequested", "One device is stopped, wiped or started on request; the others run on.")
    BACK_TO_POOL = ("BackToPool", "The learner's time is over, and the lablet goes back to its pool as a warm one.")
    DELETED = ("Deleted", "The Pod was deleted before its end, and a finalizer keeps the object.")
    POD_COMPLETED = ("PodCompleted", "Condition Ready of a Pod with phase Succeeded.")
    POD_FAILED = ("PodFailed", "Condition Ready of a Pod with phase Failed.")
    UNSCHEDULABLE = (
        "Unschedulable",
        "The scheduler finds no Node for a lablet; the message is from it.",
        "Add workers of its environment, or wait until lablets end.",
    )


_CREATE: Final = "Create it in the Pod's namespace; the lablet then continues by itself."
_BIND: Final = (
    "Do what the message says. If it has a `kubectl create rolebinding` command, an administrator runs that. In the "
    "provider's own namespace bind nothing: move the Pod. If the text is not UTF-8, correct the value."
)


class EnvironmentReason(Reasons):
    """Events about references of environment variables; while a mandatory one is missing no lab is imported."""

    MANDATORY_CONFIG_MAP_NOT_FOUND = (
        "MandatoryConfigMapNotFound",
        "A ConfigMap that a variable needs does not exist; nothing is imported.",
        _CREATE,
    )
    MANDATORY_CONFIG_MAP_KEY_NOT_FOUND = (
        "MandatoryConfigMapKeyNotFound",
        "A ConfigMap lacks the key that a variable needs; nothing is imported.",
        "Add the key; the lablet then continues by itself.",
    )
    FAILED_TO_READ_MANDATORY_CONFIG_MAP = (
        "FailedToReadMandatoryConfigMap",
        "A ConfigMap that a variable needs may not be read, or cannot be used; nothing is imported.",
        _BIND,
    )
    MANDATORY_SECRET_NOT_FOUND = (
        "MandatorySecretNotFound",
        "A Secret that a variable needs does not exist; nothing is imported.",
        _CREATE,
    )
    MANDATORY_SECRET_KEY_NOT_FOUND = (
        "MandatorySecretKeyNotFound",
        "A Secret lacks the key that a variable needs; nothing is imported.",
        "Add the key; the lablet then continues by itself.",
    )
    FAILED_TO_READ_MANDATORY_SECRET = (
        "FailedToReadMandatorySecret",
        "A Secret that a variable needs may not be read, or cannot be used; nothing is imported.",
        _BIND,
    )
    OPTIONAL_CONFIG_MAP_NOT_FOUND = (
        "OptionalConfigMapNotFound",
        "An optional ConfigMap did not exist at the import of the lab; its variables have no value.",
    )
    OPTIONAL_CONFIG_MAP_KEY_NOT_FOUND = (
        "OptionalConfigMapKeyNotFound",
        "A ConfigMap lacked an optional key at the import of the lab; the variable has no value.",
    )
    FAILED_TO_READ_OPTIONAL_CONFIG_MAP = (
        "FailedToReadOptionalConfigMap",
        "An optional ConfigMap could not be used at the import of the lab; its variables have no value.",
        _BIND,
    )
    OPTIONAL_SECRET_NOT_FOUND = (
        "OptionalSecretNotFound",
        "An optional Secret did not exist at the import of the lab; its variables have no value.",
    )
    OPTIONAL_SECRET_KEY_NOT_FOUND = (
        "OptionalSecretKeyNotFound",
        "A Secret lacked an optional key at the import of the lab; the variable has no value.",
    )
    FAILED_TO_READ_OPTIONAL_SECRET = (
        "FailedToReadOptionalSecret",
        "An optional Secret could not be used at the import of the lab; its variables have no value.",
        _BIND,
    )
    INVALID_ENVIRONMENT_VARIABLE_NAMES = (
        "InvalidEnvironmentVariableNames",
        "Keys of a ConfigMap or Secret in `envFrom` cannot be names of variables, or have no text; they are left out.",
        "Rename the keys, or set the variables with `valueFrom`.",
    )


class ConsoleReason(Reasons):
    """What is wrong with a session that a user asks for."""

    NOT_A_DEVICE = (
        "NotADevice",
        "The container is the lablet as a whole, which has no console.",
        "Name a device's container with `-c`; the message lists them.",
    )
    NO_LAB = ("NoLab", "The lablet has no lab (yet).", "Wait until it runs.")
    DEVICE_OFF = ("DeviceOff", "The device does not run.", "Wait until it runs; `kubectl describe pod` says more.")
    NO_CONSOLE = (
        "NoConsole",
        "CML has no console for the device; external connectors and unmanaged switches never have one.",
        "Use another device.",
    )
    NO_SCREEN = (
        "NoScreen",
        "The topology gives the device no port for its screen.",
        "Tag the device `vnc:PORT` in the topology of the definition; labs that are made from then on have it.",
    )
    CONSOLE_IN_USE = (
        "ConsoleInUse",
        "Another session types at the console of the device; up to 32 sessions may watch.",
        "Attach without `-i`, or take over until you leave: `kubectl lablet console POD DEVICE --take-over`.",
    )
    NO_CONFIGURATION = (
        "NoConfiguration",
        "CML extracts no configuration of the device: its kind has none, it is empty, or the device is hidden.",
        "Use another device; the definition's author sees hidden ones in what `collect` keeps.",
    )
    UNSUPPORTED_DEVICE = (
        "UnsupportedDevice",
        "The prompt of this kind of device is not known, so that nothing says when a command has ended.",
        "Use `kubectl lablet console`, or name the prompt in the file of VKPROVIDER_CONSOLE_PROMPTS.",
    )
    NO_INPUT = (
        "NoInput",
        "`kubectl exec` types one command at a console and passes no input on to it.",
        "Use `kubectl attach -i POD -c DEVICE`, or `kubectl exec -i POD -c DEVICE -- console`; else leave out `-i`.",
    )
    NO_TERMINAL = (
        "NoTerminal",
        "A shell at a device is its console, which needs a person.",
        "`kubectl exec -it POD -c DEVICE -- console`.",
    )
    NO_FILES = (
        "NoFiles",
        "A console carries text for people, so that `kubectl cp` and programs like it cannot copy files.",
        "Tag the device's SSH port (`pat:…:22`), `kubectl port-forward POD 2222:22`, and `scp -P 2222`.",
    )
    NOT_CONFIRMED = (
        "NotConfirmed",
        "`hand-in`, `reset` and `device` cannot be undone, and nobody was there to confirm it.",
        "Add `--yes`, or ask with a terminal: `kubectl exec -it POD -c lab -- reset`.",
    )
    NOTHING_TO_DO = (
        "NothingToDo",
        "`hand-in`, `reset`, `device` or `capture stop` comes too early or too late, or nobody has the lablet.",
        "`kubectl lablet list`, or the page of the lab, says how it stands.",
    )
    NOT_A_LINK = (
        "NotALink",
        "The lab has no such link, or several of that name.",
        "Name the link by one of its ends, such as `r1:eth0`; `kubectl lablet capture POD` lists them.",
    )
    CAPTURE_RUNS = (
        "CaptureRuns",
        "Packets of a link of this lab are captured already; there is one capture in a lab at a time.",
        "Wait until it ends, or end it: `kubectl lablet capture POD --stop`.",
    )
    COMMAND_INVALID = ("CommandInvalid", "The command cannot be typed at a console.", "Correct what the message says.")
    UNKNOWN_PORT = (
        "UnknownPort",
        "The lablet has no such port, or CML does not open it.",
        "Use one of those in the message; `kubectl lablet ports POD`.",
    )
    AMBIGUOUS_PORT = (
        "AmbiguousPort",
        "Several devices have this port inside.",
        "Use the allocated port of one of them, or `kubectl lablet forward POD NAME`.",
    )
    NO_PREVIOUS_LOG = (
        "NoPreviousLog",
        "There is no log of a run before the last restart, or CML forgot it when the device was wiped.",
        "Leave out `--previous`.",
    )
    TOO_MANY_SESSIONS = (
        "TooManySessions",
        "32 sessions watch this console, or 256 connections to ports of the worker are open; the message says which.",
        "Close sessions that nobody needs.",
    )


class KeptReason(Reasons):
    """Errors of what learners have left."""

    KEPT_INVALID = (
        "KeptInvalid",
        "The stored work of a lablet is damaged, so that nobody gets it; the provider runs on.",
        "Restore that ConfigMap from a backup, or delete it; it goes by itself after VKPROVIDER_KEPT_SECONDS.",
    )


class ExposureReason(Reasons):
    """Reasons of Events about the EndpointSlices of exposed lablets."""

    EXPOSURE_INVALID = (
        "ExposureInvalid",
        "An EndpointSlice that should stand for an exposed lablet cannot be read; its ports lead nowhere.",
        "Delete the EndpointSlice that the message names; the provider writes it again.",
    )
