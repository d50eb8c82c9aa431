"""The verbs: plan, execute, judge, measure, compare, gate. Knows ports, not libraries."""
