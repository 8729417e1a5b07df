"""The REST API of the portal: the routes by which a user has a lab, and a hub or an instructor looks after labs.

* `callers`: who asks, by token or by the headers of an ingress, and whether they may.
* `dialects`: what differs between SQR-066 and Nublado; `bodies`, `refusals`, `form`, `openapi`: answers.
* `streams`: the events of a lab; `routes`: the paths; `parts`: the page, made of all these.
"""
