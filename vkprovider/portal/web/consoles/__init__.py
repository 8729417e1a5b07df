"""A view of the site: consoles of devices in the browser, with the visitor's own token and no right of the portal.

* `frames`: what goes between a browser's console and the portal: frames, and output that waits for a slow browser.
* `routes`: the paths of the view: consoles of devices and their configurations, and which console a path names.
* `upstream`: the console of a device through the API server, with the credentials of the person at it and no others.
* `bridge`: consoles of browsers: each is a WebSocket of a page, and behind it a session of `exec` with the person's own
  token.
* `configurations`: the present configurations of the devices of a lab, as a visitor may read them, in one archive.
* `words`: why a console does not open, or has ended, in a sentence for the person at it.
"""
