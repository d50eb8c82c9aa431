"""Every metric that a policy can name."""

from __future__ import annotations

from fairgate.domain.registry import Registry
from fairgate.metrics import attack_success_rate as asr
from fairgate.metrics import (
    attribution,
    drift,
    exposure,
    intersectional,
    shift,
    social_bias,
)
from fairgate.metrics import retriever_robustness as rrs

METRICS = Registry(
    "metric",
    (
        *asr.METRICS,
        *rrs.METRICS,
        intersectional.HIDDEN,
        *exposure.METRICS,
        *drift.METRICS,
        attribution.RETRIEVAL,
        attribution.GENERATOR,
        attribution.INTERACTION,
        *asr.OF_REPEATS,
        *shift.METRICS,
        *social_bias.METRICS,
    ),
    see="fairgate metrics list",
    plugins="fairgate.metrics",
)
