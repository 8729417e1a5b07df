"""What every process needs that acts under a fence; nothing here knows labs or workers.

* `context`: what every controller is given: API client, Events, clocks, dice, identity.
"""
