"""The provider's page, for commands that ask it.

* `address`: where the provider's page is, as somebody says who may: options, or what a class was told.
* `asking`: ask the provider's page: log in, send requests.
* `archives`: what learners of a namespace left: from the page, or from the ConfigMaps themselves with an admin's right.
* `options`: the options of commands that ask the page: @page_options  --url, --token, …  → page=PageOptions(…).
"""
