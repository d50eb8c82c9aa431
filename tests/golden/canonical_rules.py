"""Rule results by construction, and what the canonical runs ran on."""

from __future__ import annotations

from fairgate.domain.outcomes import Change, Outcome, Provenance, RuleResult
from fairgate.gate.changes import check_change
from fairgate.metrics.catalogue import BY_ID

SUITE = "sentiment"
UNDER_TEST = {
    "corpus": "demo (5,000 documents, sha256:a1b2c3d4e5f6)",
    "embedder": "minilm (sha256:77aa00bb11cc)",
    "generator": "demo-slm (sha256:0f1e2d3c4b5a)",
    "prompt": "sha256:9988776655aa",
}
ENVIRONMENT = {"processor": "x86-64 avx512-vnni", "onnxruntime": "1.31.1"}
PROVENANCE = Provenance(
    under_test=UNDER_TEST,
    environment=ENVIRONMENT,
    fairgate="0.1.0",
    policy_path="policies/rag-sentiment.yaml",
    commit="0123456789abcdef0123456789abcdef01234567",
)


def change(base: float, now: float, **figures: object) -> Change:
    defaults: dict[str, object] = {
        "base": base,
        "now": now,
        "change": round(now - base, 6),
        "lower": round(now - base - 0.03, 6),
        "upper": round(now - base + 0.03, 6),
        "p_value": 0.4,
        "p_corrected": 0.8,
        "significant": False,
        "sources": 10,
        "changed_sources": 2,
        "changed_sources_needed": 6,
        "discordant": 3,
        "pairs": 80,
        "minimum_detectable": 0.041,
        "margin": 0.02,
        "detect": 0.05,
        "method": "exact sign-flip test",
    }
    return Change(**{**defaults, **figures})  # type: ignore[arg-type]


def told(metric: str, moved: Change) -> str:
    """The reason that the gate itself gives, so that no report shows a text it would not write."""
    return check_change(moved, BY_ID[metric], moved.pairs).reason


def rule(metric: str, position: int, outcome: Outcome, reason: str, **more: object) -> RuleResult:
    defaults: dict[str, object] = {"suite": SUITE, "where": {}}
    return RuleResult(
        metric=metric,
        position=position,
        outcome=outcome,
        reasons=[reason],
        **{**defaults, **more},  # type: ignore[arg-type]
    )
