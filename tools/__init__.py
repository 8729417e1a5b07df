"""Programs for people who work on the project, run from a checkout as `python -m tools.NAME`.

* `generate`: CRDs and reference pages from the code, with `crdpage`, `monitoring` and `markdown`; `commands` describes
  `kubectl lablet`; `httppage` fills in limits and refusals of the HTTP page, `policies` which annotations admission
  policies guard; `recording` records the demo and draws that, `pictures` takes pictures of the pages
  of the portal, and records what people type, with `sessions`, of what `scenery` sets up.
* `site`: hooks of mkdocs, which builds the site of the documentation.
* `render`: `manifests/install.yaml` from the kustomization, and from that the Helm chart; `helm` makes it.
* `stale`: writes what these make, or compares it.
* `vendor`: files of others that the site of the portal serves, a package.
* `changed`: whether the simulators changed, so that `make test` runs their tests.
* `workflows`: whether what `.github` names is there, and actionlint.
* `tokens`: the page of tokens, of RBAC and policies.
* `krew`: the krew manifest of a release.
* `matrix`: older versions of Kubernetes for the cluster tests. `rights`: rights of the provider, granted and used.
* `figures`: figures of the code's structure and, with `language`, of its sentences, of the checkout or of any revision;
  `rooms` counts modules, imports, names and folders, and `sources` reads the code. `walk`: the files of four walks
  through the product, such as from a Pod to its lab, by runs under a profiler.
"""
