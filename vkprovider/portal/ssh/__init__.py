"""Consoles by ssh: `ssh alice+r1@labs.example.com`, with a link as password, as an own port of the portal.

Nothing is there that the pages below `/link` have not: the same code, the same account of the link, whose token acts,
the same reviews and places. The portal has no right for it.

* `logins`: what a login and a command ask for, and the sentences of refusals.
* `door`: who comes in: connections before anybody is known, so many of one sender, and links as passwords.
* `terminal`: a console for who came in, whatever carries its bytes.
* `server`: the SSH server; it alone imports asyncssh, and is imported only where the port is on.
"""
