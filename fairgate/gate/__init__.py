"""The line of a gate: plan, ask, read, judge, tabulate, measure, compare, decide; and baselines."""
