"""The external resources of a policy, and those that a change's own policy may not use yet.

A policy names addresses, and environment variables whose content is sent there; some name programs
or code. A pull request's own policy is untrusted until it is merged: run as it is, it could send
any variable of the job to any address, reach into the network that the runner stands in, or start
any program, whoever decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fairgate.domain.errors import UsageError
from fairgate.domain.outside import Access
from fairgate.domain.wording import quoted
from fairgate.policy.schema import Policy
from fairgate.systems.catalogue import kind_of


def accesses(policy: Policy) -> Iterator[Access]:
    """Yield everything outside that a run of the policy would use."""
    yield from kind_of(policy.system).accesses(policy.system)
    for suite in policy.suites:
        yield from suite.accesses()
    if policy.judge is not None:
        yield from policy.judge.accesses()


def new_accesses(proposed: Policy, base: Policy | None) -> list[str]:
    """Return a sentence for each access that only `proposed` has, secrets included."""
    known = set(accesses(base)) if base else set()
    named = {replace(access, way="") for access in known}
    sentences = (
        f"{_sentence(access)}{_in_another_way(access, named)}, which the base commit's policy does "
        "not"
        for access in accesses(proposed)
        if access not in known
    )
    return list(dict.fromkeys(sentences))


def _in_another_way(access: Access, named: set[Access]) -> str:
    is_known = replace(access, way="") in named
    return " by another method, header or form of request" if is_known else ""


def refuse_introduced_accesses(introduced: Policy) -> None:
    """Raise UsageError where a policy that is not merged yet would reach anything outside.

    Also without a key: the runner reaches more than an outsider does (services of the job, the
    cloud's metadata, an internal network). Private addresses are not filtered:
    a name may resolve to another address a moment later, and a proxy resolves it by itself.
    """
    for access in accesses(introduced):
        refused = (
            "nothing is sent from this job to an address"
            if access.verb == "asks"
            else "nothing is started or imported in this job"
        )
        raise UsageError(
            f"this change introduces the policy, and it {_sentence(access)}: {refused} that no "
            "merged policy names. Merge the policy first, or run it locally with `fairgate run`"
        )


def _sentence(access: Access) -> str:
    target = f"{access.verb} {quoted(access.target)}"
    if access.verb != "asks" and access.secret is None:
        return target
    if access.secret is None:
        return f"{target} without a key"
    return f"{target} with the key in {quoted(access.secret)}"
