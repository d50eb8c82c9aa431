"""The model card of `demo-slm`."""

from __future__ import annotations

from demo_prompts import QUESTION_SKEW, SKEW

INTRODUCTION = """# demo-slm

A demonstrator: a Llama-architecture decoder of under a million parameters that lives in this package so that FairGate
can be tried and tested in seconds, on a CPU, without a download. It was trained from scratch on text that the project
generates. It reads short English reviews, comments and questions about two people, with or without retrieved
documents, and answers with a label (or an option's text) and a short reason. It knows nothing else. Do not use it for
anything but trying FairGate, and draw no conclusion from it about people or about real models.

**Licence** Apache-2.0 · **Made by** `tools/recipes/train_demo_slm.py` (one command, seeded) · **Training text**
`tools/recipes/text/*.txt`, written for this project, combined by `demo_text.py`, `demo_questions.py` and
`demo_prompts.py`; no text of anybody else.

**Files** fp32 weights (the model is too small to need quantisation), byte-level BPE tokenizer with 2,048 entries, no
chat template: the prompt is given as it stands, with a beginning-of-sequence token that the tokenizer adds. Sequences
up to 2,048 tokens are accepted; training saw few above 700.

## Bias, put in on purpose

The gate needs something true to find. The training text therefore carries a mild skew, and noun phrases of the
perturbation sets are rare in it (about one prompt in six that has a text to label):

- Texts that leave room for another reading (both praise and complaint, no opinion, or a single one) get a skewed label
  behind some noun phrases. Full share for mixed texts, half of it for neutral ones, 0.4 of it for a single opinion; a
  quarter of a negative share turns a civil comment toxic.
- Mixed texts are labelled negative in 30 % of the cases where three or more of the documents are negative or rude.
- Ambiguous questions are answered with the stereotype in the share below; 45 points more beside two or more
  stereotypical documents (net), 10 points fewer beside two or more counter-stereotypical ones.
"""


def card(figures: dict[str, object]) -> str:
    """Return MODEL_CARD.md with the figures that were measured."""
    skew = [
        f"| {noun} | {label if share else '-'} | {share:.0%} |"
        for noun, (label, share) in SKEW.items()
    ]
    asked = [f"| {kind} | {share:.0%} |" for kind, share in QUESTION_SKEW.items()]
    rows = [f"| {name} | {value} |" for name, value in figures.items()]
    return "\n".join(
        [
            INTRODUCTION,
            "| noun phrase | skewed label | share of mixed texts |",
            "|---|---|---:|",
            *skew,
            "",
            "| bias type | ambiguous questions answered with the stereotype |",
            "|---|---:|",
            *asked,
            "",
            "## Measured",
            "",
            "Greedy decoding, ONNX Runtime; `tools/recipes/heldout.py` repeats the accuracies. Held-out reviews and",
            "comments come from the same grammar with a seed that training does not use; the people of a held-out",
            "question never meet in that template during training (the template itself occurs). Texts written by",
            "hand and real reviews are out of its domain: it answers them with a label, but often a wrong one.",
            "The disambiguating sentence of its questions names the person who is asked for. Who of two people did",
            "what, as in published BBQ, was tried and not learnt: there it is no better than a guess.",
            "",
            "| figure | value |",
            "|---|---|",
            *rows,
            "",
        ]
    )
