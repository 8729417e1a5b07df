"""The agent: the tunnel's end beside a server.

`core` decides which requests of callers are carried out, says what it knows by itself, and is driven by any `Carrier`;
`server` carries them out, through a `Transport`; `epochs` keeps the newest epoch on disk, so that a restarted agent
still refuses a former owner.
"""
