"""Decisions: pure functions of (state, facts, now).

No I/O, no clock, no randomness, no logging: `now` and jitter are arguments, effects are returned as values. Everything
here can be tested without a loop, a cluster or a sleep, and most of vkprovider's tests do just that.
"""
