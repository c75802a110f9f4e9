/* Panels and products with them, in one type of numbers: panels.c. */

/* (n, 64) sums <- start + left right, where the compiler knows n; start NULL: the sums so far. The rows of `left` lie
   `row_step` apart and its groups of PAIR numbers `group_step`, the rows of the sums `sum_step`. */
TARGET static inline __attribute__((always_inline)) void NAMED(tile)(const int n, int64_t groups, const NUMBER *left,
                                                                      int64_t row_step, int64_t group_step,
                                                                      const NUMBER *right, float *sums, int64_t sum_step,
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

TARGET void NAMED(tiles)(int64_t rows, int64_t groups, const NUMBER *left, int64_t row_step, int64_t group_step,
                         const NUMBER *right, float *sums, int64_t sum_step, const float *start) {
    const int64_t count = (rows + TILE - 1) / TILE;
    for (int64_t tile = 0; tile < count; tile++) {
        int64_t row = rows * tile / count;
        const NUMBER *x = left + row * row_step;
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

/* Part of a packed matrix; see panels.py. */
TARGET void NAMED(pack_panels)(const Packing *args) {
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i columns = _mm512_mullo_epi32(lane, _mm512_set1_epi32((int)args->column_step));
    NUMBER *packed = args->packed;
    for (int64_t panel = 0; panel < args->panels; panel++, packed += args->panel_step)
        for (int v = 0; v < VECTORS; v++) {
            int64_t first = args->gates ? panel * LANES : (panel * VECTORS + v) * LANES;
            const float *source = args->source + first * args->column_step + (args->gates ? v * args->gate_step : 0);
            __mmask16 mask = mask_of(args->columns - first);
            for (int64_t k = 0; k < args->inner; k += PAIR) {
                Lanes rows[PAIR];
                for (int next = 0; next < PAIR; next++)
                    rows[next] = k + next >= args->known_inner ? _mm512_setzero_ps()
                                 : args->column_step == 1
                                     ? _mm512_maskz_loadu_ps(mask, source + (k + next) * args->inner_step)
                                     : gathered_lanes(source + (k + next) * args->inner_step, columns, mask);
                STORE_GROUPS(packed + (k * VECTORS + v * PAIR) * LANES, rows);
            }
        }
}
