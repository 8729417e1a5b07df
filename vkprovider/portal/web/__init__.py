"""The site: what the portal shows people in a browser.

Whatever it shows is made by the server, and works without scripts, but for consoles and changes that appear by
themselves. A visitor logs in with a token of the cluster, or with an organisation that gives one; the token then is
in encrypted cookies alone.

* `layout`: pages and pieces of pages: templates, files under names that change with their content; what every view is
  given.
* `cookie`: the cookies of a session, encrypted and authenticated, and the keys for them.
* `visitors`: who looks at the pages, by cookies or headers, whether they still may, and requests to the API server in
  their name.
* `login`: log in with a token of the cluster, and log out; how often somebody may try.
* `journeys`: logins that a browser has begun elsewhere, at a hub or at an issuer, and comes back from with a code.
* `issuer`: an organisation's issuer, asked by OpenID Connect: where one logs in and out, tokens of a login, their
  renewal.
* `openid`: log in with the organisation's issuer, go on there without a break, and log out.
* `codes`: one-time codes: who has a token of the cluster gets a code, by which a browser logs in once, at any replica.
* `links`: links of learners who have no account: the page that opens them, the cookie, and the token that then acts.
* `linksite`: the site below `/link`: of all views the one lablet that a link leads to.
* `lab`: a view of the site: the page of one lab, for its learner, and for those who teach.
* `consoles`: a view of the site: consoles of devices in the browser, with the visitor's own token and no right of the
  portal.
* `classes`: a view of the site: the classes of an instructor.
* `live`: a view of the site: changes that reach open pages by themselves, without a request to the API server.
* `hub`: the pages behind a JupyterHub: where it is, how one logs in there and out, and the paths that lead here.
* `workbench`: the road to a workbench: let in from the page of its lab, and then passed on, at a host of its own.
* `front`: where a visitor lands: the own labs, the own classes, and what may be started.
* `build`: the web pages of the portal, made of all their views, and how each request ends.
"""
