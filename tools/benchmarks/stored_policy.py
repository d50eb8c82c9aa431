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
  - {metric: asr/generation/controlled, max: 0.99, regression: {margin: 0.02}}
  - {metric: asr/retrieval, max: 0.99, regression: {margin: 0.02}}
  - {metric: rrs/mean, max: 2.9, regression: {margin: 0.05}}
"""
