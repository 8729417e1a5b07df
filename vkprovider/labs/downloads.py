"""`GET /labs/{id}/download`: a lab as a file, for those who may `get` `lablets/download` of its Pod."""

from typing import Protocol

from aiohttp import web

from vkprovider.api.errors import Fenced, InputError, NotFound, OutsideError
from vkprovider.controllers.exports import Found
from vkprovider.labs.access import Access, Resource
from vkprovider.labs.answers import Refused


class Source(Protocol):
    """Where labs come from; see `controllers.exports`."""

    async def find(self, key: str) -> Found | None:
        """Find a lab by its own id or by its Pod's UID."""

    async def fetch(self, found: Found) -> bytes:
        """Fetch a lab as YAML."""


class Downloads:
    """Hands labs out as files."""

    def __init__(self, access: Access, source: Source) -> None:
        self._access = access
        self._source = source

    async def handle(self, request: web.Request) -> web.Response:
        """Answer `GET /labs/{id}/download`; the id is the lab's, or its Pod's UID."""
        user = await self._access.user(request)  # who is nobody must not learn which labs there are
        key = request.match_info["id"]
        unknown = Refused(404, "LabUnknown", f"no lablet has a lab or Pod with the id {key!r}")
        try:
            found = await self._source.find(key)
            if found is None:
                raise unknown
            claim = found.claim
            await self._access.check(user, Resource("download", claim.namespace, claim.pod))
            body = await self._source.fetch(found)
        except NotFound:
            raise unknown from None
        except InputError as error:
            raise Refused(503, error.reason, error.message) from None
        except (OutsideError, Fenced) as error:
            raise Refused(
                503, "LabUnavailable", f"the lab cannot be fetched now: {error}", {"Retry-After": "5"}
            ) from None
        name = f"{claim.pod}-{claim.lab_id}.yaml"
        headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
        return web.Response(body=body, content_type="application/yaml", headers=headers)
