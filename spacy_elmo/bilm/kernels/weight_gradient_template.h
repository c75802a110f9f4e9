/* (left columns, right columns) of the transposed of one matrix by another, in one type of numbers: weight_gradient.c. */

/* PAIR rows of a panel from as many of a matrix; rows and columns beyond the last are zero. */
TARGET static inline __attribute__((always_inline)) void NAMED(pack_rows)(const NUMBER *from, int64_t stride, int64_t rows,
                                                                          int64_t columns, NUMBER *packed) {
    for (int v = 0; v < VECTORS; v++) {
        Lanes numbers[PAIR];
        for (int row = 0; row < PAIR; row++) {
            const NUMBER *first = from + row * stride + v * LANES;
            if (columns >= PANEL)
                numbers[row] = row < rows ? LOAD_NUMBERS(first) : _mm512_setzero_ps();
            else
                numbers[row] = row < rows ? LOAD_MASKED(first, mask_of(columns - v * LANES)) : _mm512_setzero_ps();
        }
        STORE_GROUPS(packed + v * LANES * PAIR, numbers);
    }
}

/* `rows` rows of a matrix as panels of its columns, `step` numbers apart. */
TARGET static void NAMED(pack_block)(const NUMBER *matrix, int64_t stride, int64_t rows, int64_t columns, NUMBER *packed,
                                      int64_t step) {
    /* Row by row: lines of rows that are a power of two apart take the same few places of a cache. */
    for (int64_t row = 0; row < rows; row += PAIR)
        for (int64_t column = 0; column < columns; column += PANEL) {
            const NUMBER *from = matrix + row * stride + column;
            NUMBER *out = packed + column / PANEL * step + row * PANEL;
            if (rows - row >= PAIR && columns - column >= PANEL)
                NAMED(pack_rows)(from, stride, PAIR, PANEL, out);
            else
                NAMED(pack_rows)(from, stride, rows - row, columns - column, out);
        }
}

/* Sums of the columns of a left panel with those of a right one, over the rows that are packed; the sums of 64 x 64, or
   what there is of them, lie in rows of `stride`. */
TARGET static void NAMED(panel_sums)(const NUMBER *left, int64_t left_columns, const NUMBER *right, int64_t right_columns,
                                     int64_t rows, float *sums, int64_t stride, int add) {
    const float zeros[PANEL] = {0};
    float scratch[PANEL * PANEL];
    int whole = right_columns == PANEL;
    if (add && !whole)
        for (int64_t r = 0; r < left_columns; r++)
            memcpy(scratch + r * PANEL, sums + r * stride, right_columns * sizeof *sums);
    for (int64_t row = 0; row < rows; row += INNER)
        NAMED(tiles)(left_columns, (least(INNER, rows - row) + PAIR - 1) / PAIR, left + row * PANEL, PAIR, PANEL * PAIR,
                     right + row * PANEL, whole ? sums : scratch, whole ? stride : PANEL, add || row > 0 ? NULL : zeros);
    if (!whole)
        for (int64_t r = 0; r < left_columns; r++)
            memcpy(sums + r * stride, scratch + r * PANEL, right_columns * sizeof *sums);
}

static void NAMED(pack_left)(const void *arguments, int64_t first, int64_t last) {
    const Block *block = arguments;
    const WeightGradient *args = block->args;
    for (int64_t panel = first; panel < last; panel++)
        NAMED(pack_block)((const NUMBER *)args->left + block->row * args->left_stride + panel * PANEL, args->left_stride,
                          block->rows, least(PANEL, args->left_columns - panel * PANEL),
                          (NUMBER *)args->left_scratch + panel * ROWS * PANEL, 0 /* there is one panel */);
}

static void NAMED(sum_columns)(const void *arguments, int64_t first, int64_t last) {
    const Block *block = arguments;
    const WeightGradient *args = block->args;
    NUMBER *packed = (NUMBER *)args->right_scratch + first * COLUMNS * ROWS;
    for (int64_t column = first * COLUMNS; column < least(last * COLUMNS, args->right_columns); column += COLUMNS) {
        int64_t columns = least(COLUMNS, args->right_columns - column);
        const NUMBER *right = (const NUMBER *)args->right + block->row * args->right_stride + column;
        NAMED(pack_block)(right, args->right_stride, block->rows, columns, packed, ROWS * PANEL);
        for (int64_t row = 0; row < args->left_columns; row += PANEL)
            for (int64_t panel = 0; panel < columns; panel += PANEL)
                NAMED(panel_sums)((const NUMBER *)args->left_scratch + row * ROWS, least(PANEL, args->left_columns - row),
                                  packed + panel * ROWS, least(PANEL, columns - panel), block->rows,
                                  args->sums + row * args->sum_stride + column + panel, args->sum_stride,
                                  args->add || block->row > 0);
    }
}

void NAMED(weight_gradient)(const WeightGradient *args) {
    int64_t left = (args->left_columns + PANEL - 1) / PANEL, right = (args->right_columns + COLUMNS - 1) / COLUMNS;
    for (int64_t row = 0; row < args->rows; row += ROWS) {
        const Block block = {args, row, least(ROWS, args->rows - row)};
        spacy_elmo_share_rows(args->threads, left, block.rows, NAMED(pack_left), &block);
        spacy_elmo_share_rows(args->threads, right, block.rows * args->left_columns, NAMED(sum_columns), &block);
    }
}
