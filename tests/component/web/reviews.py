"""What a stand-in for the API server says of tokens and rights."""

from aiohttp import web

from tests.component.kube.apiserver import ApiServer

TOKENS = "POST /apis/authentication.k8s.io/v1/tokenreviews"
RIGHTS = "POST /apis/authorization.k8s.io/v1/subjectaccessreviews"


def says(server: ApiServer, *, when: str, times: int = 1, **status: object) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"status": status}, status=201)

    server.next(answer, when=when, times=times)
