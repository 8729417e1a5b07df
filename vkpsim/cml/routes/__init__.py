"""Handlers of the CML API, one module per part; `views` renders their JSON.

* `labs`, `lab_extras`, `testbed`, `nodes`, `links`, `annotations`: a lab and what is in it.
* `definitions`: node and image definitions.
* `accounts`, `pools`, `licensing`, `system`, `manage`, `diagnostics`: the controller.
"""
