"""What a scripted server answers of tokens and rights."""

from aiohttp import web

from tests.support.scripted import ScriptedServer

TOKENS = "POST /apis/authentication.k8s.io/v1/tokenreviews"
RIGHTS = "POST /apis/authorization.k8s.io/v1/subjectaccessreviews"


def says(server: ScriptedServer, *, when: str, times: int = 1, **status: object) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"status": status}, status=201)

    server.next(answer, when=when, times=times)
