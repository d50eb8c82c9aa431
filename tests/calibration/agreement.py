"""Whether executed systems and replayed variants agree within intervals."""

import numpy as np
from calibration.tables import clopper_pearson


def agree(rows: np.ndarray) -> None:
    """Assert that two kinds of runs are stopped as often, and have the same mean value.

    `rows` holds for each world: executed stops, replayed stops, executed value, replayed value.
    """
    limits = [clopper_pearson(int(rows[:, n].sum()), len(rows), confidence=0.99) for n in (0, 1)]
    assert max(low for low, _ in limits) <= min(high for _, high in limits)
    values = rows[:, 2:]
    error = np.sqrt(values.var(axis=0, ddof=1).sum() / len(rows))
    assert abs(values[:, 0].mean() - values[:, 1].mean()) <= max(4 * error, 0.01)
