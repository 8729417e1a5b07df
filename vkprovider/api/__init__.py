"""Vocabulary: names, errors, quantities, slim wire structs and the models of the custom resources.

Pure data. Nothing here decides, does I/O, or knows the clock; every other package may import it.
"""
