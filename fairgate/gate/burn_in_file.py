"""What a burn-in has written, read back: how much the unchanged system varies."""

from __future__ import annotations

from pathlib import Path

from fairgate.domain.errors import DataError
from fairgate.gate.baseline import KnownSd
from fairgate.io.text_files import read_json_object

BURN_IN = "burn-in.json"
BURN_IN_VERSION = 1
_MAX_BYTES = 16 << 20
_MOST_SD = 3
"""As in policies: no value of a metric changes by more from source to source."""


def read_burn_in(path: Path, policy: str) -> list[KnownSd]:
    """Return the standard deviations in a burn-in.json. Raises DataError."""
    try:
        body = read_json_object(path, _MAX_BYTES)
        if body["schema_version"] != BURN_IN_VERSION:
            raise DataError(
                f"{path}: burn-in format {body['schema_version']!r:.40}, this FairGate reads "
                f"{BURN_IN_VERSION}; run `fairgate burn-in` again"
            )
        sds = [
            KnownSd(
                metric=str(row["metric"]),
                suite=str(row["suite"]),
                where={str(k): str(v) for k, v in row["where"].items()},
                sd=float(row["sd"]),
            )
            for row in body["sds"]
        ]
        name = body["policy"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path}: no readable {BURN_IN} ({error!r:.100}); make one with `fairgate burn-in`"
        ) from error
    if name != policy:
        raise DataError(
            f"{path}: is the burn-in of policy {name!r:.80}, not of {policy!r}; name the right file"
        )
    if any(not 0 <= row.sd <= _MOST_SD for row in sds):
        raise DataError(f"{path}: holds a standard deviation that is not between 0 and {_MOST_SD}")
    return sds
