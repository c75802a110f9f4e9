/* Products with panels of a packed matrix, in one type of numbers; both_types.h includes this once for each and says what
   the names in capitals are.

   A panel has 64 columns, row after row; in bfloat16 its rows lie two and two, so that one lane of an instruction finds
   the PAIR numbers that it multiplies and adds up. */

/* (n, 64) sums <- start + left right, where the compiler knows n; start NULL: the sums so far. The rows of `left` lie
   `row_step` apart and its groups of PAIR numbers `group_step`, the rows of the sums `sum_step`. */
TARGET static inline __attribute__((always_inline)) void NAMED(tile)(const int n, int64_t groups, const LOW *left,
                                                                      int64_t row_step, int64_t group_step,
                                                                      const LOW *right, float *sums, int64_t sum_step,
                                                                      const float *start) {
    Lanes sum[TILE][VECTORS];
    for (int row = 0; row < n; row++)
        for (int v = 0; v < VECTORS; v++)
            sum[row][v] = _mm512_loadu_ps((start == NULL ? sums + row * sum_step : start) + v * LANES);
    for (int64_t k = 0; k < groups; k++, left += group_step, right += PANEL * PAIR) {
        Group column[VECTORS];
        for (int v = 0; v < VECTORS; v++)
            column[v] = LOAD_GROUPS(right + v * LANES * PAIR);
        for (int row = 0; row < n; row++) {
            Group x = SPREAD_GROUP(left + row * row_step);
            for (int v = 0; v < VECTORS; v++)
                sum[row][v] = MULTIPLY_ADD(sum[row][v], x, column[v]);
        }
    }
    for (int row = 0; row < n; row++)
        for (int v = 0; v < VECTORS; v++)
            _mm512_storeu_ps(sums + row * sum_step + v * LANES, sum[row][v]);
}

/* The same for any number of rows. A row's sums do not depend on the rows beside it. */
TARGET static void NAMED(tiles)(int64_t rows, int64_t groups, const LOW *left, int64_t row_step, int64_t group_step,
                                const LOW *right, float *sums, int64_t sum_step, const float *start) {
    const int64_t count = (rows + TILE - 1) / TILE;
    for (int64_t tile = 0; tile < count; tile++) {
        int64_t row = rows * tile / count;
        const LOW *x = left + row * row_step;
        float *out = sums + row * sum_step;
        switch (rows * (tile + 1) / count - row) {
        case 1:
            NAMED(tile)(1, groups, x, row_step, group_step, right, out, sum_step, start);
            break;
        case 2:
            NAMED(tile)(2, groups, x, row_step, group_step, right, out, sum_step, start);
            break;
        case 3:
            NAMED(tile)(3, groups, x, row_step, group_step, right, out, sum_step, start);
            break;
        case 4:
            NAMED(tile)(4, groups, x, row_step, group_step, right, out, sum_step, start);
            break;
        case 5:
            NAMED(tile)(5, groups, x, row_step, group_step, right, out, sum_step, start);
            break;
        default:
            NAMED(tile)(TILE, groups, x, row_step, group_step, right, out, sum_step, start);
        }
    }
}
