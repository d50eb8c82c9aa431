"""A cluster of one machine with two CPUs, which is there for these tests alone."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def cluster():
    """Return the address of a cluster whose workers know the tests' own modules."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    with pytest.MonkeyPatch.context() as patch:
        # Of this tree, whatever tree the environment has installed.
        tests = Path(__file__).parents[1]
        patch.setenv("PYTHONPATH", os.pathsep.join(map(str, (tests, tests.parent))))
        patch.setenv("RAY_worker_niceness", "0")
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            object_store_memory=128 * 2**20,
            log_to_driver=False,
            logging_level="ERROR",
        )
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()
