"""The provider's page, for commands that ask it.

* `options`: where it is, and as whom it is asked; it imports no client.
* `address`: who says where it is.
* `asking`: log in, ask.
* `archives`: what learners left.
"""
