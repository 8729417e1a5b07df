"""One replica.

* `run`: its controllers, wired, and every loop by name; `loops`: run them beside each other; `ending`: hand over.
* `queues`, `informers`: what is built before the controllers; `changes`: which change adds which key.
"""
