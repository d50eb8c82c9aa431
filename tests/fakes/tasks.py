"""Tasks as suites have them."""

from fairgate.policy.definition_files import read_task, task_from_policy


def load_task(name, *, folder=None):
    """Return the task that a policy calls `name`; one of free answers cannot be loaded so."""
    return task_from_policy(read_task(name, folder=folder), None)
