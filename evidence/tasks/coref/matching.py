"""The best one-to-one matching of rows and columns (the assignment problem)."""

import numpy as np


def best_matching(similarity: np.ndarray) -> float:
    """Return the largest sum of entries, if no two entries may share a row or a column.

    It uses the Hungarian method (Kuhn 1955) with shortest paths (Jonker and Volgenant 1987): one row after the other is
    added to an optimal matching.

    Args:
        similarity: (n, m), not negative.

    Raises:
        ValueError: an entry is negative. Then the best matching might leave out a row, but this function never does.
    """
    if similarity.size and similarity.min() < 0:
        raise ValueError(
            f"The smallest entry is {similarity.min()}, but a similarity must be at least 0"
        )
    cost = -(similarity if similarity.shape[0] <= similarity.shape[1] else similarity.T)
    rows, columns = cost.shape
    row_price = np.zeros(rows)
    column_price = np.zeros(columns)
    owner = np.full(columns, -1)
    for row in range(rows):
        # Dijkstra's algorithm over columns, from the new row to the nearest unmatched column.
        distance = np.full(columns, np.inf)
        before = np.full(columns, -1)
        done = np.zeros(columns, dtype=bool)
        here, column, reached = row, -1, 0.0
        while True:
            step = reached + cost[here] - row_price[here] - column_price
            nearer = ~done & (step < distance)
            distance[nearer], before[nearer] = step[nearer], column
            column = int(np.where(done, np.inf, distance).argmin())
            reached = distance[column]
            if owner[column] < 0:
                break
            done[column] = True
            here = owner[column]
        # With the new prices, every edge of the matching still costs 0, and no edge costs less.
        gain = reached - distance[done]
        row_price[owner[done]] += gain
        row_price[row] += reached
        column_price[done] -= gain
        while column >= 0:
            previous = before[column]
            owner[column] = row if previous < 0 else owner[previous]
            column = previous
    taken = owner >= 0
    return float(-cost[owner[taken], taken].sum())
