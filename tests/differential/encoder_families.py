"""Random encoders of real architectures, saved as sentence-transformers would publish them."""

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import fairgate

MODELS = Path(fairgate.__file__).parent / "data" / "models"
WORDS, PIECES = MODELS / "minilm", MODELS / "demo-slm"
SMALL = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "initializer_range": 0.3,
}  # fmt: skip
POSITIONS = {"max_position_embeddings": 128}
GROUPED = SMALL | {"num_key_value_heads": 2, "vocab_size": 2048, "max_position_embeddings": 1024}
WORDPIECE = SMALL | POSITIONS | {"vocab_size": 30522}
OFFSET = WORDPIECE | {"max_position_embeddings": 130, "pad_token_id": 1}


@dataclass(frozen=True, kw_only=True)
class Family:
    """One row of the table."""

    name: str
    config: str
    """Class of `transformers`."""
    sizes: dict = field(default_factory=dict)
    tokenizer: Path = WORDS
    pooling: str | tuple[str, ...] = "mean"
    modules: tuple[str, ...] = ("Normalize",)
    """After Transformer and Pooling."""
    prompts: dict[str, str] = field(default_factory=dict)
    include_prompt: bool = True
    truncate: int | None = None
    length: int | None = None
    lower: bool = False
    padding_side: str | None = None

    @property
    def kind(self) -> str:
        parts = ["+".join([self.pooling] if isinstance(self.pooling, str) else self.pooling)]
        parts += [name for name in self.modules if name != "Normalize"]
        parts += ["prompts"] if self.prompts else []
        parts += [] if self.include_prompt else ["prompt left out"]
        parts += [f"{self.truncate} dimensions"] if self.truncate else []
        parts += [f"{self.length} tokens"] if self.length else []
        parts += ["lower case"] if self.lower else []
        return ", ".join(parts)


E5 = {"query": "query: ", "document": "passage: "}
QWEN = {"query": "Instruct: Find what was said\nQuery: ", "document": ""}

FAMILIES = (
    Family(name="BERT (MiniLM, BGE)", config="BertConfig", sizes=WORDPIECE),
    Family(name="BERT (MiniLM, BGE)", config="BertConfig", sizes=WORDPIECE, pooling="cls"),
    Family(name="BERT (MiniLM, BGE)", config="BertConfig", sizes=WORDPIECE, pooling="max"),
    Family(name="BERT (MiniLM, BGE)", config="BertConfig", sizes=WORDPIECE, pooling="mean_sqrt_len_tokens"),
    Family(name="BERT (MiniLM, BGE)", config="BertConfig", sizes=WORDPIECE, pooling=("cls", "mean")),
    Family(name="BERT (E5)", config="BertConfig", sizes=WORDPIECE, prompts=E5),
    Family(name="BERT (Instructor)", config="BertConfig", sizes=WORDPIECE, prompts=E5, include_prompt=False),
    Family(name="BERT", config="BertConfig", sizes=WORDPIECE, pooling="weightedmean", prompts=E5, include_prompt=False),
    Family(name="BERT (Matryoshka)", config="BertConfig", sizes=WORDPIECE, truncate=12),
    Family(name="BERT", config="BertConfig", sizes=WORDPIECE, length=24),
    Family(name="BERT", config="BertConfig", sizes=WORDPIECE, modules=("Dense", "Normalize")),
    Family(name="BERT", config="BertConfig", sizes=WORDPIECE, modules=("Dense", "LayerNorm", "Normalize"), prompts=E5),
    Family(name="RoBERTa", config="RobertaConfig", sizes=OFFSET, length=128),
    Family(name="XLM-RoBERTa (multilingual E5, BGE-M3)", config="XLMRobertaConfig", sizes=OFFSET, length=128, pooling="cls", prompts=E5),
    Family(name="CamemBERT", config="CamembertConfig", sizes=OFFSET, length=128),
    Family(name="MPNet", config="MPNetConfig", sizes=OFFSET, length=128),
    Family(name="DistilBERT", config="DistilBertConfig", sizes={"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "vocab_size": 30522, "initializer_range": 0.3} | POSITIONS),
    Family(name="ALBERT", config="AlbertConfig", sizes=WORDPIECE | {"embedding_size": 16}),
    Family(name="ELECTRA", config="ElectraConfig", sizes=WORDPIECE | {"embedding_size": 32}, pooling="cls"),
    Family(name="DeBERTa-v2", config="DebertaV2Config", sizes=WORDPIECE),
    Family(name="MobileBERT", config="MobileBertConfig", sizes=WORDPIECE | {"embedding_size": 16, "intra_bottleneck_size": 32, "true_hidden_size": 32}),
    Family(name="SqueezeBERT", config="SqueezeBertConfig", sizes=WORDPIECE | {"embedding_size": 32, "q_groups": 2, "k_groups": 2, "v_groups": 2, "post_attention_groups": 1, "intermediate_groups": 2, "output_groups": 2}),
    Family(name="ConvBERT", config="ConvBertConfig", sizes=WORDPIECE | {"embedding_size": 32, "head_ratio": 2}),
    Family(name="RoFormer", config="RoFormerConfig", sizes=WORDPIECE | {"embedding_size": 32}),
    Family(name="Nystromformer", config="NystromformerConfig", sizes=WORDPIECE),
    Family(name="ModernBERT", config="ModernBertConfig", sizes=WORDPIECE | {"local_attention": 16, "global_attn_every_n_layers": 2, "max_position_embeddings": 1024, "reference_compile": False, "pad_token_id": 0, "cls_token_id": 101, "sep_token_id": 102}),
    Family(name="T5 (GTR, Sentence-T5)", config="T5Config", sizes={"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "vocab_size": 30522}, length=64, modules=("Dense", "Normalize")),
    Family(name="GPT-2 (SGPT)", config="GPT2Config", sizes={"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128, "vocab_size": 2048}, tokenizer=PIECES, pooling="weightedmean"),
    Family(name="Qwen3 (Qwen3-Embedding)", config="Qwen3Config", sizes=GROUPED | {"head_dim": 16}, tokenizer=PIECES, pooling="lasttoken", prompts=QWEN, padding_side="left"),
    Family(name="Qwen2 (GTE-Qwen2)", config="Qwen2Config", sizes=GROUPED, tokenizer=PIECES, pooling="lasttoken", prompts=QWEN, truncate=16),
    Family(name="Mistral (E5-Mistral), window 32", config="MistralConfig", sizes=GROUPED | {"sliding_window": 32}, tokenizer=PIECES, pooling="lasttoken", prompts=QWEN, length=512),
    Family(name="Llama", config="LlamaConfig", sizes=GROUPED, tokenizer=PIECES, pooling="mean", length=512),
    Family(name="Gemma3 text, window 32", config="Gemma3TextConfig", sizes=GROUPED | {"head_dim": 16, "sliding_window": 32, "query_pre_attn_scalar": 16}, tokenizer=PIECES, prompts=E5, length=512),
    Family(name="Phi-3 (LongRoPE)", config="Phi3Config", sizes=GROUPED | {"original_max_position_embeddings": 64, "pad_token_id": 2, "rope_scaling": {"type": "longrope", "short_factor": [1.0] * 4, "long_factor": [8.0] * 4}}, tokenizer=PIECES, pooling="lasttoken", length=512),
    Family(name="BERT", config="BertConfig", sizes=WORDPIECE, lower=True),
)  # fmt: skip


_WITHOUT_SEGMENTS = frozenset({"DistilBertConfig", "ModernBertConfig", "T5Config"})


def publish(family: Family, folder: Path) -> Path:
    """Save the family's model as sentence-transformers publishes it; return its folder."""
    import torch
    import transformers
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules as parts

    torch.manual_seed(3)
    config = getattr(transformers, family.config)(**family.sizes)
    plain = folder / "transformer"
    model_class = transformers.T5EncoderModel if family.config == "T5Config" else None
    model = model_class(config) if model_class else transformers.AutoModel.from_config(config)
    model.eval().save_pretrained(plain)
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        shutil.copy(family.tokenizer / name, plain / name)
    settings = json.loads((plain / "tokenizer_config.json").read_text())
    settings.pop("model_max_length", None)
    settings |= {"padding_side": family.padding_side} if family.padding_side else {}
    settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    if family.tokenizer is PIECES or family.config in _WITHOUT_SEGMENTS:
        settings["model_input_names"] = ["input_ids", "attention_mask"]
    (plain / "tokenizer_config.json").write_text(json.dumps(settings))
    first = parts.Transformer(str(plain), max_seq_length=family.length, do_lower_case=family.lower)
    width = first.get_embedding_dimension()
    chain = [first, parts.Pooling(width, family.pooling, include_prompt=family.include_prompt)]
    width = chain[-1].get_embedding_dimension()
    for name in family.modules:
        if name == "Dense":
            chain.append(parts.Dense(width, 24))
            width = 24
        else:
            chain.append(parts.LayerNorm(width) if name == "LayerNorm" else parts.Normalize())
    published = SentenceTransformer(modules=chain, prompts=family.prompts, truncate_dim=family.truncate, device="cpu")  # fmt: skip
    published.save(str(folder / "published"))
    own = folder / "published" / "sentence_bert_config.json"
    said = json.loads(own.read_text())
    said |= {"max_seq_length": family.length} if family.length else {}
    said |= {"do_lower_case": True} if family.lower else {}
    own.write_text(json.dumps(said))
    return folder / "published"
