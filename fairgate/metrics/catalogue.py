"""Every metric that a policy can name."""

from __future__ import annotations

from fairgate.domain.catalogue import Catalogue
from fairgate.metrics import attack_success_rate, attribution, identity, intersectional, social_bias
from fairgate.metrics import attack_success_rate as asr
from fairgate.metrics import retriever_robustness as rrs

METRICS = BY_ID = Catalogue(
    "metric",
    (
        asr.GENERATION_CONTROLLED,
        asr.GENERATION_CONTROLLED_CONTROL,
        asr.GENERATION,
        asr.GENERATION_CONTROL,
        asr.GENERATION_NET,
        asr.FDR,
        asr.RETRIEVAL,
        asr.RETRIEVAL_CONTROL,
        asr.RETRIEVAL_NET,
        rrs.MEAN,
        rrs.MEAN_CONTROL,
        rrs.BAND,
        rrs.OVERLAP,
        rrs.OVERLAP_CONTROL,
        rrs.MEAN_DISTANCE,
        asr.UNREADABLE_NET,
        *identity.COMPARING,
        intersectional.HIDDEN,
        attribution.RETRIEVAL,
        attribution.GENERATOR,
        attribution.INTERACTION,
        *attack_success_rate.METRICS,
        *social_bias.METRICS,
    ),
    see="fairgate metrics list",
)
