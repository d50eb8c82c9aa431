"""What all tests share."""

import os

from hypothesis import HealthCheck, settings

# How long an example takes says more about the machine's load than about the code. Everybody's own
# runs look for new examples; in CI a change must not be held up by one that was drawn this time.
for profile, repeatable in (("default", False), ("ci", True)):
    settings.register_profile(
        profile,
        deadline=None,
        derandomize=repeatable,
        suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
    )
settings.load_profile("ci" if os.environ.get("CI") else "default")
