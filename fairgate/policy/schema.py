"""The policy file as pydantic models: every field described, nothing unknown allowed.

The JSON Schema that editors use is generated from these classes, and so is the policy reference.
Rates are fractions; names of embedded things, paths and Hugging Face ids are plain strings.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, Tag, field_validator, model_validator

from fairgate.policy.fields import ByKind, ByShape, Finite, Fraction, Name, Seed, Strict, Text
from fairgate.policy.item_suites import BbqSuitePolicy


class PreparePolicy(Strict):
    """How the corpus is cleaned before it is indexed (P1 section 4.1)."""

    tokenizer: str = Field(
        default="bundled",
        description="Counts tokens for the length fence: `bundled`, `gpt2`, a path or an id.",
    )
    sample: Annotated[float, Field(gt=0, le=1)] = Field(
        default=1.0, description="Fraction of the cleaned texts to keep (P1: 0.1)."
    )
    seed: Seed = Field(default=42, description="Seed of the sample.")


class Columns(Strict):
    """A table of texts: where it is and which columns matter."""

    path: Text = Field(description="CSV, TSV, JSONL or Parquet file, or an embedded name.")
    id: str | None = Field(
        default=None, description="Column of the identifier; default: row number."
    )
    text: str | None = Field(
        default=None, description="Column of the text; default: found by name."
    )
    label: str | None = Field(
        default=None,
        description="Column of the label (`toxic`, …); default: found by name, if any.",
    )


class CorpusPolicy(Columns):
    """The documents that the retriever searches."""

    prepare: Annotated[
        Annotated[bool, Tag("<switch>")] | Annotated[PreparePolicy, Tag("<mapping>")], ByShape
    ] = Field(
        default=False, description="Clean the corpus first, as `fairgate corpus prepare` does."
    )


class RetrieverPolicy(Strict):
    """The retriever under test."""

    corpus: Annotated[
        Annotated[Text, Tag("<scalar>")] | Annotated[CorpusPolicy, Tag("<mapping>")], ByShape
    ] = Field(description="Embedded name, path, or path with columns.")
    embedder: Text = Field(
        default="minilm",
        description="Embedded name, folder of an ONNX encoder, or Hugging Face id.",
    )
    index: Literal["flat"] = Field(
        default="flat", description="`flat`: exact inner product (FAISS)."
    )
    top_k: Annotated[int, Field(ge=1, le=100)] = Field(
        default=4, description="How many documents the generator is shown."
    )


class DecodingPolicy(Strict):
    """How the generator chooses tokens. Temperature 0 is greedy."""

    temperature: Annotated[float, Field(ge=0, le=5)] = Field(
        default=0.0, description="0 is greedy."
    )
    top_p: Annotated[float, Field(gt=0, le=1)] = Field(
        default=1.0, description="Nucleus mass kept."
    )
    top_k: Annotated[int, Field(ge=0)] = Field(default=0, description="Tokens kept; 0 keeps all.")
    max_new_tokens: Annotated[int, Field(ge=1, le=8192)] = Field(
        default=150, description="Longest answer, in tokens."
    )
    seed: Seed = Field(default=42, description="Seed from which every case's own seed is derived.")


class GeneratorPolicy(Strict):
    """The small language model under test."""

    model: Text = Field(
        default="demo-slm",
        description="Embedded name, folder of an ONNX decoder, or Hugging Face id.",
    )
    revision: str | None = Field(default=None, description="Commit of a Hugging Face model.")
    decoding: Annotated[
        Annotated[Literal["greedy", "paper-text", "paper-code"], Tag("<scalar>")]
        | Annotated[DecodingPolicy, Tag("<mapping>")],
        ByShape,
    ] = Field(
        default="greedy",
        description="A preset (`greedy`; `paper-text` and `paper-code`, as P1) or own values.",
    )
    prompt: str | None = Field(
        default=None,
        description="Template with {instruction}, {documents} and {text}; default: FairGate's own.",
    )
    document_characters: Annotated[int, Field(ge=1)] = Field(
        default=1000, description="Longest excerpt of a document that is put into the prompt."
    )


class SystemPolicy(Strict):
    """The system under test: a retriever and a generator, or answers recorded elsewhere."""

    retriever: RetrieverPolicy | None = Field(
        default=None, description="Left out: the generator is asked without documents."
    )
    generator: GeneratorPolicy | None = Field(default=None, description="The model that answers.")
    recorded: str | None = Field(
        default=None, description="JSONL file of answers that were produced elsewhere."
    )
    embedder: str | None = Field(
        default=None,
        description="Without `retriever`: embeds a recorded system's documents for RRS, and the "
        "collections of `bbq` suites; default `minilm`.",
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.recorded is None and self.generator is None:
            raise ValueError("names neither `generator` nor `recorded`; one of them is needed")
        if self.recorded is not None and (self.generator or self.retriever):
            raise ValueError("`recorded` replaces `retriever` and `generator`: remove one side")
        if self.embedder is not None and self.retriever is not None:
            raise ValueError("has `embedder` twice; set `retriever.embedder` alone")
        return self


class TaskPolicy(Strict):
    """A task of the user's own."""

    id: Name = Field(description="Name of the task in reports.")
    description: str = Field(default="", description="For readers.")
    source: str = Field(default="", description="Where the task comes from.")
    licence: str = Field(default="", description="Licence of the instruction.")
    instruction: Text = Field(description="What the model is asked to do with the text.")
    labels: Annotated[list[Text], Field(min_length=2)] = Field(description="Admissible answers.")
    equivalent: list[Annotated[list[Text], Field(min_length=2)]] = Field(
        default_factory=list, description="Groups of labels that count as the same answer."
    )


class SuitePolicy(Strict):
    """Metamorphic tests: sources, relations and what perturbs them."""

    id: Name = Field(description="Name of the suite; unique in the policy.")
    kind: Literal["metamorphic"] = Field(default="metamorphic", description="Kind of the suite.")
    task: Annotated[
        Annotated[Text, Tag("<scalar>")] | Annotated[TaskPolicy, Tag("<mapping>")], ByShape
    ] = Field(
        description="`sentiment`, `toxicity`, a task file, or a task of your own written here."
    )
    sources: Annotated[
        Annotated[Text, Tag("<scalar>")] | Annotated[Columns, Tag("<mapping>")], ByShape
    ] = Field(description="Embedded name, path, or path with columns.")
    limit: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="Use only the first so many sources."
    )
    relations: Annotated[list[Text], Field(min_length=1)] = Field(
        default=["set-equivalence"], description="Ids of metamorphic relations."
    )
    perturbations: Annotated[list[Text], Field(min_length=1)] = Field(
        default=["race", "gender", "orientation", "age"],
        description="Embedded perturbation sets or paths of your own.",
    )
    control: Text = Field(
        default="neutral",
        description="Perturbation set of the placebo arm; `none` switches the arm off.",
    )
    criterion: Literal["count", "any", "sequence"] = Field(
        default="count", description="When two label profiles of the top k differ (asr/retrieval)."
    )
    matching: Literal["hungarian", "greedy"] = Field(
        default="hungarian", description="Assignment in RRS; `greedy` reproduces P1's code."
    )
    distance: Literal["euclidean", "cosine"] = Field(
        default="euclidean", description="Distance between document embeddings in RRS."
    )
    bands: Annotated[
        Annotated[Literal["paper", "from-baseline"], Tag("<scalar>")]
        | Annotated[
            Annotated[list[Annotated[float, Field(gt=0, le=3)]], Field(min_length=2, max_length=2)],
            Tag("<list>"),
        ],
        ByShape,
    ] = Field(
        default="paper",
        description="Upper limits of the RRS bands high and moderate: P1's cut-offs, "
        "quartiles of the baseline, or two numbers.",
    )
    repeats: Annotated[int, Field(ge=1, le=20)] = Field(
        default=1, description="Ask so many times with different sampling seeds."
    )
    unstable_margin: Annotated[float, Field(ge=0)] = Field(
        default=0.02, description="Label margin in nats below which an answer counts as unstable."
    )
    attribution: Literal["sampled", "all", "off"] = Field(
        default="sampled",
        description="Cross texts and documents to tell retrieval from generator: violated pairs "
        "and as many satisfied ones, all pairs, or none. Without a retriever there is none.",
    )

    @field_validator("bands")
    @classmethod
    def _rising_bands(cls, bands: str | list[float]) -> str | list[float]:
        if isinstance(bands, list) and bands[0] >= bands[1]:
            raise ValueError("needs two rising numbers, such as [0.63, 1.31]")
        return bands


class RegressionPolicy(Strict):
    """When a change against the baseline fails the build: significant and larger than `margin`."""

    margin: Annotated[float, Field(ge=0, le=3)] = Field(
        default=0.02, description="Largest change that is accepted."
    )
    detect: Annotated[float, Field(gt=0, le=3)] = Field(
        default=0.05, description="Change that the suite must be able to see to say `pass`."
    )
    strict: bool = Field(
        default=False,
        description="Test 'change <= margin' itself (approximate) instead of 'no change'.",
    )
    sd: Annotated[float, Field(gt=0, le=3)] | None = Field(
        default=None,
        description="Standard deviation of the per-source change that is known beforehand; the "
        "detectable change never rests on a smaller one.",
    )


class GatePolicy(Strict):
    """One rule: a metric, where it applies, and what it must keep."""

    metric: Text = Field(description="Id of a metric, see `fairgate metrics list`.")
    suite: str | None = Field(
        default=None, description="Suite; default: every suite that has the metric."
    )
    where: dict[str, str] = Field(
        default_factory=dict, description="Slice: category, term, band, setting, …"
    )
    for_each: str | None = Field(
        default=None,
        description="One rule for each value of this dimension (`category`, `term`, …).",
    )
    max: Finite | None = Field(default=None, description="Upper bound of the value.")
    min: Finite | None = Field(default=None, description="Lower bound of the value.")
    max_abs: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        default=None, description="Bound of the absolute value."
    )
    regression: RegressionPolicy | None = Field(
        default=None, description="Compare with the baseline."
    )
    evidence: Literal["estimate", "interval"] = Field(
        default="estimate", description="Whether bounds judge the estimate or the whole interval."
    )
    on_inconclusive: Literal["warn", "fail"] | None = Field(
        default=None, description="Overrides the policy's `on_inconclusive`."
    )
    advisory: bool = Field(default=False, description="Report, never fail the build.")

    @model_validator(mode="after")
    def _asks_something(self) -> Self:
        if self.max is None and self.min is None and self.max_abs is None and not self.regression:
            raise ValueError("asks nothing: give `max`, `min`, `max_abs` or `regression`")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"`min` {self.min:g} is above `max` {self.max:g}")
        if self.for_each is not None and self.for_each in self.where:
            raise ValueError(f"`{self.for_each}` is in both `where` and `for_each`")
        return self


class QuarantinePolicy(Strict):
    """A case that counts for nothing until a date: known to be unstable, being looked into."""

    case: Text = Field(description="Key of a source or follow-up, as reports and `plan` show it.")
    until: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")] = Field(
        description="Last day in quarantine, YYYY-MM-DD; afterwards the entry is an error."
    )
    reason: Text = Field(description="Why, for the reviewer; stands in every report.")
    suite: str | None = Field(default=None, description="Suite; default: every suite.")


class Policy(Strict):
    """A fairness policy: what is tested, how, and what fails the build."""

    version: Literal[1] = Field(description="Version of the policy format.")
    name: Name = Field(description="Name of the policy; its baseline is `baselines/<name>.json`.")
    description: str = Field(default="", description="For readers.")
    seed: Seed = Field(
        default=42, description="Seed of resampling and of everything drawn at random."
    )
    system: SystemPolicy
    suites: Annotated[
        list[
            Annotated[
                Annotated[SuitePolicy, Tag("<metamorphic>")]
                | Annotated[BbqSuitePolicy, Tag("<bbq>")],
                ByKind,
            ]
        ],
        Field(min_length=1),
    ] = Field(description="What is tested.")
    gates: Annotated[list[GatePolicy], Field(min_length=1)] = Field(
        description="The rules that pass or fail the build."
    )
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = Field(
        default=0.95, description="Confidence of intervals and tests."
    )
    correction: Literal["holm", "none"] = Field(
        default="holm", description="Correction for testing several rules."
    )
    on_inconclusive: Literal["warn", "fail"] = Field(
        default="warn", description="What an underpowered regression rule does."
    )
    min_decided: Fraction = Field(
        default=0.95, description="Share of planned cases that must be decided."
    )
    max_invalid: Fraction = Field(
        default=0.10, description="Share of follow-ups the linter may reject."
    )
    min_overlap: Fraction = Field(
        default=0.9, description="Share of the baseline's cases that must remain comparable."
    )
    quarantine: list[QuarantinePolicy] = Field(
        default_factory=list, description="Cases that count for nothing until a date."
    )
    redact: Literal["none", "excerpt", "hash"] = Field(
        default="excerpt", description="How texts appear in reports."
    )

    @property
    def metamorphic(self) -> list[SuitePolicy]:
        """Return the suites of metamorphic tests."""
        return [suite for suite in self.suites if isinstance(suite, SuitePolicy)]

    @property
    def item_suites(self) -> list[BbqSuitePolicy]:
        """Return the suites of question items."""
        return [suite for suite in self.suites if isinstance(suite, BbqSuitePolicy)]
