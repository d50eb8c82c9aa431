"""The policy of benchmarks of a fully stored gate: 2,100 pairs and 900 controls."""

POLICY = """\
version: 1
name: bench
system:
  retriever: {corpus: demo}
  generator: {model: demo-slm, decoding: paper-text}
suites:
  - {id: sentiment, task: sentiment, sources: demo-reviews, control: neutral}
gates:
  - {parity: all, max: 0.99}
  - {metric: asr/retrieval, max: 0.99, regression: 0.02}
  - {metric: rrs/mean, max: 2.9, regression: 0.05}
"""
