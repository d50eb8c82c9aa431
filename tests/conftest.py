"""What all tests share."""

import os

from hypothesis import settings

# A change must not be held up by an example that a property test happened to draw this time;
# everybody's own runs keep looking for new ones.
settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")
