"""The composition root: settings from the environment, everything wired, every loop listed by name in `run`.

Nothing below imports this package; it is the only place that knows all of the others.
"""
