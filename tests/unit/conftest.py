"""One Hypothesis profile for all unit tests: the same examples everywhere, few enough for seconds in total."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "unit",
    derandomize=True,
    max_examples=60,
    deadline=None,
    database=None,
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("unit")
