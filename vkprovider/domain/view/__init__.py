"""What people see of a lablet, on a command line or in a browser: by its Pod and what is known besides.

* `standings`: the plain words for how a lablet stands; `words`: which of them a Pod's facts mean.
* `devices`: the devices with their states, and the ports.
* `picture`: where devices stand in a picture of the lab.
* `progress`: what goes on; `failures`: what is wrong, and what to do about it.
* `lab`: all of it as one view.
"""
