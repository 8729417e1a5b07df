"""The site behind a JupyterHub: a second time, under the path of a service of the hub, where the hub logs people in.

The hub gives each visitor's own token, with which it asks for labs, and nothing else: who a visitor is, and what they
may, the API server says as everywhere. A hub that somebody took over can name nobody who has not logged in to it.

* `place`: where the hub is, where the portal is in it, and the pages under its paths.
* `login`: log in at the hub, and log out of it, by https://jupyterhub.readthedocs.io/en/stable/howto/rest.html.
* `mounted`: the site under the path of a hub's service, and at the paths of users' servers.
"""
