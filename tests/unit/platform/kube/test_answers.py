"""What refusals of an API server are said to be."""

from vkprovider.platform.errors import NotFound
from vkprovider.platform.kube.http.answers import refusal

CMLWORKERS = "/apis/vkprovider.io/v1alpha1/cmlworkers"


def test_kind_that_the_api_server_does_not_serve_is_told_from_an_object_that_is_missing() -> None:
    """A real API server answers an unknown path with this text, and no Status."""
    unserved = refusal(404, b"404 page not found\n", {}, f"GET {CMLWORKERS}")
    assert isinstance(unserved, NotFound)
    assert unserved.message == (
        f"GET {CMLWORKERS}: the API server does not serve this kind: its custom resource definition is missing, or not "
        "established yet; `vkprovider doctor` says how it is installed"
    )
    missing = refusal(404, b'{"kind": "Status", "message": "cmlworkers \\"a\\" not found"}', {}, f"GET {CMLWORKERS}/a")
    assert missing.message == 'cmlworkers "a" not found'
    assert "custom resource" not in refusal(404, b"<html>no such page</html>", {}, "GET /version").message
