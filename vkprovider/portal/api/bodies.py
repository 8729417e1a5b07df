"""What the page says of a lab, in one of the dialects. Of the environment of a request, it says the names alone."""

import math
from collections.abc import Callable, Iterable
from typing import Any, Final

from vkprovider.lablet import names
from vkprovider.platform.objects import Event
from vkprovider.platform.times import iso
from vkprovider.portal.api.dialects import SQR066, PortalDialect
from vkprovider.portal.pure import clock, stream
from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.pure.position import Position, news
from vkprovider.portal.pure.quota import Amounts, amounts_of
from vkprovider.portal.pure.state import UserLabStatus, presence_of, status_of

_RUNNING: Final = UserLabStatus.RUNNING
Body = dict[str, Any]


class Bodies:
    """Describes labs.

    Attributes:
        wall: Returns the API server's time in Unix seconds.
    """

    def __init__(
        self, dialect: PortalDialect, wall: Callable[[], float], amounts_of_image: Callable[[str], Amounts]
    ) -> None:
        """Create it.

        Args:
            dialect: How labs are described.
            wall: Returns the API server's time in Unix seconds.
            amounts_of_image: Returns what the Pod of an image needs.
        """
        self._dialect = dialect
        self.wall = wall
        self._amounts_of_image = amounts_of_image

    def running(self, labs: Iterable[UserLab]) -> list[str]:
        """Return the users whose labs run, in their order."""
        return [lab.user for lab in labs if status_of(lab) is _RUNNING]

    def lab(self, lab: UserLab, events: Iterable[Event]) -> Body:
        """Return the status of a lab."""
        return self._sqr066(lab, events) if self._dialect is SQR066 else self._nublado(lab)

    def end(self, end: float) -> Body:
        """Return the end of a lab, which may be infinite."""
        at = None if math.isinf(end) else iso(int(end))
        return {"ends_at": at, "ends": clock.words(end, self.wall())}

    def _sqr066(self, lab: UserLab, events: Iterable[Event]) -> Body:
        record = lab.record
        request = record.request
        _, sent = news(Position(), stream.tell(lab, events))
        return {
            "username": lab.user,
            "status": status_of(lab),
            "pod": presence_of(lab),
            "options": request.options if request is not None else {},
            "env": list(request.env) if request is not None else [],
            "uid": None,  # a lab has no users of an operating system
            "gid": None,
            "groups": [],
            "quotas": self._amounts(lab),
            "events": [self._dialect.said(each) for each in sent],
            **self._ours(lab),
        }

    def _nublado(self, lab: UserLab) -> Body:
        request = lab.record.request
        options = dict(request.options) if request is not None else {}
        image = request.definition if request is not None else ""
        url = _url(lab)
        return {
            "user": {"username": lab.user, "uid": None, "gid": None, "groups": []},
            "options": {
                "image": image,
                "size": options.get("size", ""),
                "enable_debug": options.get("enable_debug", False),
                "reset_user_env": options.get("reset_user_env", False),
            },
            "status": status_of(lab),
            **({"internal_url": url} if url else {}),
            "resources": self._amounts(lab),
            "quota": None,
            **self._ours(lab),
        }

    def _amounts(self, lab: UserLab) -> Body:
        """Return the amounts that the lab needs of its worker, all of which are reserved."""
        request = lab.record.request
        if lab.pod is not None:
            needed = amounts_of(lab.pod.spec.overhead)
        else:
            needed = self._amounts_of_image(request.definition) if request is not None else Amounts()
        amounts = {"cpu": needed.cpus, "memory": needed.memory_bytes}
        return {"limits": amounts, "requests": amounts}

    def _ours(self, lab: UserLab) -> Body:
        """Return the fields that neither SQR-066 nor Nublado knows."""
        pod = lab.pod
        active = pod.metadata.annotations.get(names.ANNOTATION_LAST_ACTIVITY) if pod is not None else None
        return {**self.end(lab.end_at), "last_activity": active, "exposed": pod is not None and lab.exposed}


def _url(lab: UserLab) -> str:
    """Return the address of the lab in CML, or of its worker while only an agent knows CML; "" while there is none."""
    if lab.pod is None:
        return ""
    address = lab.pod.status.pod_ip
    fallback = f"https://{f'[{address}]' if ':' in address else address}/" if address else ""
    return lab.pod.metadata.annotations.get(names.ANNOTATION_LAB_URL) or fallback
