"""Which endpoints a policy would have asked, and which of them a change may not have asked yet.

A policy names an address and an environment variable whose content is sent there. A pull request's
own policy is a stranger's until it is merged: run as it is, it could send any variable of the job
to any address, and reach into the network that the runner stands in, whoever decides.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairgate.domain.errors import UsageError
from fairgate.domain.wording import quoted
from fairgate.policy.schema import Policy
from fairgate.suites.question_items.policy import EndpointPolicy


def _endpoints(policy: Policy) -> Iterator[EndpointPolicy]:
    for suite in policy.item_suites:
        yield from (asked for asked in suite.retrievers if isinstance(asked, EndpointPolicy))


def new_endpoints(proposed: Policy, base: Policy | None) -> list[str]:
    """Return a sentence for each pair of address and variable that only `proposed` has."""
    known = {(asked.endpoint, asked.api_key_env) for asked in _endpoints(base)} if base else set()
    return list(
        dict.fromkeys(
            f"asks {quoted(asked.endpoint)} {_with_key(asked)}, which the base commit's policy "
            "does not"
            for asked in _endpoints(proposed)
            if (asked.endpoint, asked.api_key_env) not in known
        )
    )


def refuse_introduced_endpoints(introduced: Policy) -> None:
    """Raise UsageError where a policy that nobody has merged yet would ask any address.

    Also without a key: the runner reaches what a stranger does not (services of the job, the
    cloud's metadata, an internal network). Which of the addresses are private is not for us to
    tell: a name may resolve to another address a moment later, and a proxy resolves it by itself.
    """
    for asked in _endpoints(introduced):
        raise UsageError(
            f"this change introduces the policy, and it asks {quoted(asked.endpoint)} "
            f"{_with_key(asked)}: nothing is sent from this job to an address that no merged "
            "policy names. Merge the policy first, or run it locally with `fairgate run`"
        )


def _with_key(asked: EndpointPolicy) -> str:
    if asked.api_key_env is None:
        return "without a key"
    return f"with the key in {quoted(asked.api_key_env)}"
