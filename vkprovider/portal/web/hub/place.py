"""Where the hub is, where the portal is in it, and the pages under its paths."""

import hashlib
from base64 import urlsafe_b64encode
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit


class HubPlace(NamedTuple):
    """A hub, and the service that the portal is there.

    Attributes:
        api_url: The API of the hub, as the portal reaches it: `http://hub:8081/hub/api`.
        service: The name of the service.
    """

    api_url: str
    service: str

    @property
    def front(self) -> str:
        """The path before those of the hub: `/`, or `/jupyter/`."""
        return urlsplit(self.api_url).path.removesuffix("/").removesuffix("hub/api")

    @property
    def base(self) -> str:
        """The path before those of the site, as the hub's proxy leads there."""
        return f"{self.front}services/{self.service}"

    @property
    def client_id(self) -> str:
        """The name of the service among the hub's OAuth clients."""
        return f"service-{self.service}"

    @property
    def callback(self) -> str:
        """The path to which the hub sends a browser back."""
        return f"{self.base}/oauth_callback"

    @property
    def logout(self) -> str:
        """The path at which one logs out of the hub."""
        return f"{self.front}hub/logout"

    def authorize(self, state: str, verifier: str) -> str:
        """Return the path to which a browser is sent, to log in.

        Args:
            state: Comes back with the code.
            verifier: Proves whoever asks for the token as the one who began (RFC 7636).
        """
        challenge = urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        asked = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.callback,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return f"{self.front}hub/api/oauth2/authorize?{urlencode(asked)}"
