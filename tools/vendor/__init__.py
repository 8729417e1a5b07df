"""Files of others that the site of the portal serves: `python -m tools.vendor` fetches them, `--check` compares them.

* `packages`: which files of which packages of npm, by `packages.toml`.
* `fetching`: packages by npm, held against their hashes; one that comes as modules becomes one file, by esbuild.
"""
