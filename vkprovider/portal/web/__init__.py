"""The site: what the portal shows people in a browser.

Whatever it shows is made by the server, and works without scripts, but for consoles and changes that appear by
themselves. A visitor logs in with a token of the cluster, which then is in encrypted cookies alone.

* `assets`: files under names with a hash; `headers`: the headers of every answer; `layout`: templates.
* `keys`: the keys of the portal; `cookie`: the cookies of a session; `origin`: which page a request comes from.
* `visitor`, `visitors`: who looks at the site; `login`: log in and out; `codes`: one-time codes; `limits`: on
  what costs requests.
* `asvisitor`: requests to the API server in a visitor's name.
* `context`: what every view is given; the views, each a package: `lab`, `consoles`, `classes`, `live`.
* `hub`: the site a second time, behind a JupyterHub that logs people in.
* `front`: the front page; `answers`: refusals as pages, and the log; `parts`: the site, made of all these.
"""
