"""What commands print.

* `formats`: `-o` of every command that lists; `tables`: its tables.
* `progress`: what is shown while a command waits.
* `terminal`: width and colours of a terminal.
"""
