"""In which direction answers change: worse for an identity, or better.

For a task whose labels have an order from the worst to the best, a pair counts 1 where the answer
is worse than that of most control prompts of its source, -1 where it is better, and else 0; a
control prompt is compared with the others. How far an answer moves does not enter, only to which
side. Unlike changed answers, changes at random add nothing, so a harm of the same size stands out;
as much better as worse is not seen. Pairs of two identities (Meta-Fair) have no direction.
"""

COLUMN = "direction"
"""A suite has it where its task says the order of the labels."""
