"""Names on the wire: labels, annotations, taints, conditions, and how names are derived.

Selectors and tolerations of users rely on them, so each is defined once, here.
"""

import hashlib
import re
from base64 import b32encode
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from vkprovider.platform.wellknown import GROUP

# Labels of nodes and of our own objects.
LABEL_COMPONENT: Final = f"{GROUP}/component"
LABEL_STACK: Final = f"{GROUP}/stack"
LABEL_ENV: Final = f"{GROUP}/env"
DEFAULT_ENVIRONMENT: Final = "default"
"""The environment of workers and definitions that name none."""
LABEL_WORKER: Final = f"{GROUP}/worker"
LABEL_TUNNEL: Final = f"{GROUP}/tunnel"
LABEL_CML_VERSION: Final = f"{GROUP}/cml-version"
LABEL_TOPOLOGY_PREFIX: Final = f"{GROUP}/topology-"
"""The prefix of a topology version in a Node's label that says whether its CML imports it: `true` or `false`."""
LABEL_POOL: Final = f"{GROUP}/pool"
LABEL_USED_FOR: Final = f"{GROUP}/used-for"
"""A Secret's label: the purpose for which it may be read."""
USED_FOR_WORKER: Final = "worker"
USED_FOR_DEVICES: Final = "devices"
LABEL_NAMESPACE: Final = f"{GROUP}/namespace"
"""A label of what is kept of a lablet: the namespace of its Pod."""
LABEL_OWNER: Final = f"{GROUP}/owner"
"""A label of what is kept of a user lab: the digest of its owner."""
LABEL_PORTAL: Final = f"{GROUP}/portal"
"""The mark of a Namespace of a user lab, which only portals and admins set."""
LABEL_OWNER_NAMESPACE: Final = f"{GROUP}/owner-namespace"
"""A definition's label: the namespace of the class whose instructors may change it."""
LABEL_FAMILY: Final = f"{GROUP}/family"
"""A definition's label: the family of labs that it is of, for the menus of portals."""
LABEL_LINKS: Final = f"{GROUP}/links"
"""A label of the namespace of a class: whether its learners may get links, by which one needs no account."""
LINKS_ALLOWED: Final = "allowed"
LABEL_TYPE: Final = "type"
LABEL_HOSTNAME: Final = "kubernetes.io/hostname"
LABEL_ROLE: Final = "node-role.kubernetes.io/cml-worker"
LABEL_NO_LOAD_BALANCER: Final = "node.kubernetes.io/exclude-from-external-load-balancers"
COMPONENT_VNODE: Final = "vnode"
COMPONENT_CLAIMS: Final = "claims"
COMPONENT_CONTENT: Final = "content"
COMPONENT_CONFIGS: Final = "configs"
COMPONENT_RUNTIME_CLASS: Final = "runtimeclass"
COMPONENT_SESSION_EVENTS: Final = "session-events"
COMPONENT_SERVING: Final = "serving-certificate"
COMPONENT_EXPOSED: Final = "exposed-lablet"
COMPONENT_ASSIGNMENT: Final = "assignment"
"""What lets a learner into an assigned lablet: a Role on the Pod, and its binding."""
COMPONENT_LINK: Final = "link"
"""What acts in the cluster for who opens a learner's link: a ServiceAccount."""
COMPONENT_SCHEDULE: Final = "schedule"
"""What makes a pool full before a class: CronJobs, and what acts for them."""
ROLE_INSTRUCTOR: Final = "vkprovider-instructor"
"""The ClusterRole of an instructor, and the RoleBinding of a class that carries what an admin says of it."""
ROLE_CLASS_LEARNER: Final = "vkprovider-class-learner"
"""The ClusterRole of who attends a class, bound in its namespace."""

# Taints; the scheduler's half of the contract is in the RuntimeClass.
TAINT_VIRTUAL_NODE: Final = f"{GROUP}/virtual-node"
TAINT_ENV: Final = f"{GROUP}/env"
ANNOTATION_PAGE_URL: Final = f"{GROUP}/page-url"
"""An annotation of the RoleBinding of a class: the address of the page, to which instructors send their tokens."""
ANNOTATION_USERNAME_PREFIX: Final = f"{GROUP}/username-prefix"
"""An annotation of the same: what the usernames of learners begin with in the cluster."""
ANNOTATION_IMAGE: Final = f"{GROUP}/image"
"""An annotation of the same: the image of the installation, which Jobs of the class run."""
ANNOTATION_AGENTS_URL: Final = f"{GROUP}/agents-url"
ANNOTATION_CML_BUILD: Final = f"{GROUP}/cml-build"
ANNOTATION_NODE_LABELS: Final = f"{GROUP}/node-labels"
ANNOTATION_HOST: Final = f"{GROUP}/host"
"""An annotation of a worker's Secret: the hosts that its password may be sent to."""
ANNOTATION_APPROVED: Final = f"{GROUP}/approved"
"""An annotation of a CMLWorker that was made for an agent: `false` until an admin approves it."""
ANNOTATION_CORDONED: Final = f"{GROUP}/cordoned"
"""An annotation of a Node that we have cordoned until its CMLWorker is approved."""
ANNOTATION_ABANDON: Final = f"{GROUP}/abandon"
ANNOTATION_REFRESH: Final = f"{GROUP}/refresh"
ANNOTATION_USERNAME: Final = f"{GROUP}/username"
ANNOTATION_LEARNER: Final = f"{GROUP}/learner"
ANNOTATION_SHOWN_NAME: Final = f"{GROUP}/shown-name"
"""The name by which people know the learner, see `lablet.shownname`."""
ANNOTATION_TIMESLOT_START: Final = f"{GROUP}/timeslot-start"
ANNOTATION_TIMESLOT_END: Final = f"{GROUP}/timeslot-end"
ANNOTATION_DESIRED_STATE: Final = f"{GROUP}/desired-state"
ANNOTATION_RESET: Final = f"{GROUP}/reset"
ANNOTATION_DEVICE_REQUESTS: Final = f"{GROUP}/device-requests"
"""What is asked of single devices, see `lablet.deviceacts`."""
ANNOTATION_MESSAGE: Final = f"{GROUP}/message"
"""A message of an instructor to the learner, with its time, see `lablet.inputs`."""
ANNOTATION_GUESTS: Final = f"{GROUP}/guests"
"""Who shares a lablet with its learner, and how, see `lablet.guests`."""
ANNOTATION_OWNER: Final = f"{GROUP}/owner"
"""Of the Pod of a user lab: the user as the API server names it, who may read what was saved of the lab."""
ANNOTATION_BEGIN_FROM: Final = f"{GROUP}/begin-from"
"""The id of what the user or learner has left, whose configurations the devices begin with."""
ANNOTATION_LINK_HASH: Final = f"{GROUP}/link-hash"
"""An annotation of the ServiceAccount of a link: the SHA-256 sum of what the link is opened with."""
ANNOTATION_LINK_POD: Final = f"{GROUP}/link-pod"
"""An annotation of the same: the Pod that the link leads to, and its UID: `NAME/UID`."""
LINK_PREFIX: Final = "vkprovider-link-"
ANNOTATION_LENT_BY: Final = f"{GROUP}/lent-by"
ANNOTATION_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
ANNOTATION_STATE: Final = f"{GROUP}/state"
ANNOTATION_LAB_ID: Final = f"{GROUP}/lab-id"
ANNOTATION_LAB_URL: Final = f"{GROUP}/lab-url"
ANNOTATION_CONTENT: Final = f"{GROUP}/content"
ANNOTATION_DEVICES: Final = f"{GROUP}/devices"
"""A report of a Pod: how many devices of the lab are booted, of how many, such as `5/6`; connectors and
unmanaged switches are none."""
ANNOTATION_PORT_MAPPINGS: Final = f"{GROUP}/port-mappings"
ANNOTATION_ACCESS: Final = f"{GROUP}/access"
"""A report of a Pod whose ports are lent to a mux: what the mux answered for each, as `exposure.Access` in JSON."""
ANNOTATION_LAST_ACTIVITY: Final = f"{GROUP}/last-activity"
"""A report of a Pod: when somebody last worked in the lab."""
ANNOTATION_SESSION_ID: Final = f"{GROUP}/lds-session-id"
ANNOTATION_SESSION_BASE_URL: Final = f"{GROUP}/lds-base-url"
ANNOTATION_SESSION_LOGIN_URL: Final = f"{GROUP}/lds-login-url"
INPUTS: Final = frozenset(
    {
        ANNOTATION_USERNAME,
        ANNOTATION_SHOWN_NAME,
        ANNOTATION_TIMESLOT_START,
        ANNOTATION_TIMESLOT_END,
        ANNOTATION_DESIRED_STATE,
        ANNOTATION_RESET,
        ANNOTATION_DEVICE_REQUESTS,
        ANNOTATION_MESSAGE,
        ANNOTATION_GUESTS,
        ANNOTATION_OWNER,
        ANNOTATION_BEGIN_FROM,
        ANNOTATION_LENT_BY,
    }
)
"""Annotations by which users direct a lablet: requests that the provider reads."""
OF_LEARNER: Final = INPUTS - {ANNOTATION_RESET, ANNOTATION_OWNER, ANNOTATION_LENT_BY}
"""Those that count for the time of one learner, and not for the next one."""
REPORTS: Final = frozenset(
    {
        ANNOTATION_LEARNER,
        ANNOTATION_STATE,
        ANNOTATION_LAB_ID,
        ANNOTATION_LAB_URL,
        ANNOTATION_CONTENT,
        ANNOTATION_DEVICES,
        ANNOTATION_PORT_MAPPINGS,
        ANNOTATION_ACCESS,
        ANNOTATION_LAST_ACTIVITY,
        ANNOTATION_SESSION_ID,
        ANNOTATION_SESSION_BASE_URL,
        ANNOTATION_SESSION_LOGIN_URL,
    }
)
"""Annotations of a lablet's Pod that only the provider writes; `manifests/policies` refuses them from others."""
POD_ANNOTATIONS: Final = INPUTS | REPORTS

FINALIZER: Final = f"{GROUP}/claims"
MUX_PROXY: Final = "vkprovider-mux"
"""A value of `LABEL_SERVICE_PROXY`: no kube-proxy reads these slices."""
ANNOTATION_EXPOSED: Final = f"{GROUP}/exposed"
"""The identity of an exposed lablet, which the provider writes."""
ANNOTATION_MUX_ANSWER: Final = f"{GROUP}/mux-answer"
"""The answer to it: the only thing of such a slice that the mux may write."""

# Extended resources.
RESOURCE_LAB_NODES: Final = f"{GROUP}/lab-nodes"
RESOURCE_PORTS: Final = f"{GROUP}/ports"

# Conditions of a lablet's Pod.
CONDITION_LAB_IMPORTED: Final = f"{GROUP}/LabImported"
CONDITION_LAB_CONVERGED: Final = f"{GROUP}/LabConverged"
CONDITION_PORTS_OPEN: Final = f"{GROUP}/PortsOpen"
CONDITION_SESSION_READY: Final = f"{GROUP}/SessionReady"
CONSOLE: Final = "console"
"""`exec -- console [DEVICE] [--take-over]` attaches: to the device of the container, or to one that is named."""
TAKE_OVER: Final = "--take-over"
CONFIG: Final = "config"
"""`exec -c lab -- config DEVICE` prints a configuration; in the container of a device the word is typed there."""
HAND_IN: Final = "hand-in"
"""`exec -c lab -- hand-in [--yes]` ends the learner's time, as `kubectl lablet collect` does."""
RESET: Final = "reset"
"""`exec -c lab -- reset [--yes]` wipes the lab and starts it again, as `kubectl lablet reset` does."""
DEVICE: Final = "device"
"""`exec -c lab -- device start|stop|restart|wipe DEVICE [--yes]` does it to one device, and leaves the others alone."""
SCREEN: Final = "screen"
"""`exec -i -c lab -- screen DEVICE` carries the bytes of a VNC client (RFC 6143) to the device's screen and back."""
CAPTURE: Final = "capture"
"""`exec -c lab -- capture LINK`, `-- capture stop`, `-- capture list`: packets of a link, see `lablet.captures`."""
CONDITION_SESSION_STARTED: Final = f"{GROUP}/SessionStarted"
NODE_PREFIX: Final = "vnode."
IMAGE_PREFIX: Final = "cml/"
"""The prefix of an image definition's id in `status.images` of a Node."""
TITLE_CHARS_MAX: Final = 64
"""CML's limit on a lab's title."""
CONTAINER_NAME_CHARS_MAX: Final = 63
LAB_CONTAINER: Final = "lab"
"""The container that represents the lab as a whole; no device gets this name."""

_CLAIMS_SUFFIX: Final = "-port-allocations"
_NOT_DNS = re.compile(r"[^a-z0-9-]")
_CML_VERSION = re.compile(r"^(\d{1,2})\.(\d{1,2})\.(\d{1,2})(?!\d)(.{0,32})$")


def node_name(worker: str) -> str:
    """Return the Node's name of a worker."""
    return NODE_PREFIX + worker


def environment_of(spec: Mapping[str, Any]) -> str:
    """Return the environment that the spec of a CMLWorker or LabletDefinition names, as it was written."""
    return str(spec.get("environment", DEFAULT_ENVIRONMENT))


def worker_of(node: str) -> str | None:
    """Return the worker of a Node name; None if it is not one of our Nodes."""
    return node[len(NODE_PREFIX) :] if node.startswith(NODE_PREFIX) else None


def is_lablet(runtime_class: str, node: str, node_selector: Mapping[str, str]) -> bool:
    """Return whether a Pod is a lablet: the RuntimeClass of a definition sends it to a worker, or it is on one.

    Who asks needs no right to read definitions, and need not know them all.
    """
    sent = node_selector.get(LABEL_COMPONENT) == COMPONENT_VNODE
    return bool(runtime_class) and (sent or node.startswith(NODE_PREFIX))


def assignment_name(pod: str) -> str:
    """Return the name of the Role on an assigned Pod, and of its binding; nothing else has this prefix.

    `manifests/base/instructors.yaml` and `confine.yaml` know it, too.
    """
    return f"vkprovider-assigned:{pod}"


def schedule_account(pool: str) -> str:
    """Return the name of the ServiceAccount that acts for the schedule of a pool; nothing else has this prefix.

    `manifests/base/instructors.yaml` knows it, too.
    """
    return f"vkprovider-schedule-{pool}"


def schedule_role(pool: str) -> str:
    """Return the name of the Role of that account, and of its binding; the same holds for it."""
    return f"vkprovider-schedule:{pool}"


_LINK_BYTES: Final = 10


def link_account(learner: str, pod_uid: str = "") -> str:
    """Return the name of the ServiceAccount of a learner's link; nothing else has this prefix.

    A guest of a lablet has a link for that lablet alone, beside the one to an own lablet; the Pod's UID tells them
    apart.

    `manifests/base/instructors.yaml`, `confine.yaml` and the portal's `confine.yaml` know it, too.

    >>> link_account("alice")
    'vkprovider-link-fpmansl7byak6gq7'
    """
    whose = f"{learner}\n{pod_uid}" if pod_uid else learner  # no username has a line break
    digest = hashlib.sha256(whose.encode(errors="surrogatepass")).digest()[:_LINK_BYTES]
    return LINK_PREFIX + b32encode(digest).decode().lower()


_ACTING_BY_LINK: Final = re.compile(rf"system:serviceaccount:[^:]*:{LINK_PREFIX}.*")


def acts_by_link(username: str) -> bool:
    """Return whether a user of the cluster is the account of a link."""
    return _ACTING_BY_LINK.fullmatch(username) is not None


def link_target(annotations: Mapping[str, str]) -> tuple[str, str]:
    """Return name and UID of the Pod that a link leads to, by the annotations of its ServiceAccount; "" if unknown."""
    pod, _, uid = annotations.get(ANNOTATION_LINK_POD, "").partition("/")
    return pod, uid


def claims_name(owner: str) -> str:
    """Return the name of the ConfigMap with the claims of a worker, or of a mux."""
    return f"{owner}{_CLAIMS_SUFFIX}"


def worker_of_claims(name: str) -> str:
    """Return the worker whose claims are in a ConfigMap of that name."""
    return name.removesuffix(_CLAIMS_SUFFIX)


def content_name(definition: str, digest: str) -> str:
    """Return the name of the immutable ConfigMap of one version's content."""
    return f"{definition[:40].rstrip('-.')}-{digest[:16]}"


def lab_title(definition: str, definition_uid: str, pod_uid: str) -> str:
    """Build the title of a lablet's lab; at most 64 characters, unique by the Pod's UID.

    >>> lab_title("a-very-long-definition-name", "0a1b2c3d-…", "11111111-2222-3333-4444-555555555555")
    'a-very-long-defini-0a1b2c3d-11111111-2222-3333-4444-555555555555'
    """
    return f"{definition[:18]}-{definition_uid[:8]}-{pod_uid}"


def lab_url(worker_url: str, lab_id: str) -> str:
    """Return the address of a lab in CML's own pages, as Cisco's `cml ui` opens it; "" if the worker has no pages.

    >>> lab_url("https://cml-1.example.com", "6f2c")
    'https://cml-1.example.com/lab/6f2c'
    """
    pages = _pages_of(worker_url)
    return f"{pages}/lab/{lab_id}" if pages else ""


@lru_cache(maxsize=1024)
def _pages_of(worker_url: str) -> str:
    """Return scheme, host and port; credentials in a URL go nowhere."""
    try:
        parts = urlsplit(worker_url)
    except ValueError:
        return ""
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}" if parts.scheme in {"http", "https"} and host else ""


def mark(installation: str) -> str:
    """Build the first line of a lab's notes: the installation that owns the lab."""
    return f"vkprovider installation={installation}"


def container_name(label: str, taken: set[str]) -> str:
    """Derive a device's container name from its label.

    Lower case, every other character `-`, trimmed to 63; collisions get `-2`, `-3`. The result is added to `taken`.
    """
    stem = _NOT_DNS.sub("-", label.lower()).strip("-")[:CONTAINER_NAME_CHARS_MAX].strip("-") or "device"
    name, n = stem, 1
    while name in taken:
        n += 1
        suffix = f"-{n}"
        name = stem[: CONTAINER_NAME_CHARS_MAX - len(suffix)].rstrip("-") + suffix
    taken.add(name)
    return name


def cml_release(version: str) -> tuple[int, int, int] | None:
    """Parse `2.9.1+build.7` as (2, 9, 1); None if it is not a CML version."""
    match = _CML_VERSION.match(version)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


CONSOLE_IN_USE: Final = "another session types at the console of"
"""How the refusal of a console begins at which somebody else types. An API server before 1.36 passes the text of a
refusal on, and not its reason."""
CONSOLE_TAKEN: Final = "another session has taken over"
"""How the line begins, behind a bracket, by which a session reads that it does not type any more."""
CONSOLE_RETURNED: Final = "the session that had taken over has left"
"""How the line begins by which it reads that it types again."""
CONSOLE_LEFT: Final = "the session that typed has left"
"""How the line begins by which those who watch read that nobody types any more."""


def console_command(device: str, *, take_over: bool) -> list[str]:
    """Return the command of `exec`, in the container of a lablet as a whole, that is the console of a device."""
    return [CONSOLE, device, *([TAKE_OVER] if take_over else [])]
