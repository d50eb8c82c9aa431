"""What a run of a policy reaches outside: addresses, programs, code, and the secrets sent there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fairgate.domain.schema import Access, SystemModel
from fairgate.domain.wording import quoted
from fairgate.policy.schema import Policy
from fairgate.systems.catalogue import kind_of


def accesses(policy: Policy) -> Iterator[Access]:
    """Yield everything outside that a run of the policy would use."""
    yield from kind_of(policy.system).accesses()
    if isinstance(policy.reference, SystemModel):
        yield from kind_of(policy.reference).accesses()
    for suite in policy.suites:
        yield from suite.accesses()
    if policy.judge is not None:
        yield from policy.judge.accesses()


def new_accesses(proposed: Policy, base: Policy | None) -> list[str]:
    """Return a sentence for each access that only `proposed` has, secrets included."""
    base_accesses = set(accesses(base)) if base else set()
    base_targets = {replace(access, way="") for access in base_accesses}
    other_way = " by another request, model or pace"
    sentences = (
        f"{_sentence(access)}{other_way if replace(access, way='') in base_targets else ''}, which "
        "the base commit's policy does not"
        for access in accesses(proposed)
        if access not in base_accesses
    )
    return list(dict.fromkeys(sentences))


def introduced_accesses(introduced: Policy) -> list[str]:
    """Return the addresses, programs and code that a policy not merged yet would reach.

    Also without a key: the runner reaches more than an outsider does (services of the job, the
    cloud's metadata, an internal network). Private addresses are not filtered:
    a name may resolve to another address a moment later, and a proxy resolves it by itself.

    A policy names addresses, and environment variables whose content is sent there; some name
    programs or code. Run as it is, it could send any variable of the job to any address, reach into
    the network that the runner stands in, or start any program, whoever decides.
    """
    return list(dict.fromkeys(_sentence(access) for access in accesses(introduced)))


def _sentence(access: Access) -> str:
    key = f" with the key in {quoted(access.secret)}" if access.secret is not None else ""
    if not key and access.verb == "asks":
        key = " without a key"
    return f"{access.verb} {quoted(access.target)}{key}"
