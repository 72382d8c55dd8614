"""One Hypothesis profile for every test: the same examples each run, and no clock."""

from hypothesis import settings

settings.register_profile("house", max_examples=60, deadline=None, derandomize=True)
settings.load_profile("house")
