"""Claims: which lablet has which lab, ports and session on a worker. They are the only authority.

* `claim`: one row of a worker's claims: a lablet that has, or may have, a lab there.
* `document`: the claims of one worker, as stored: which lablets have which lab, ports and session.
* `table`: the claims of one worker in memory, and what follows from them: who has which port, content and session.
* `merge`: which claims are written when not all fit, and how they are merged after another writer.
"""
