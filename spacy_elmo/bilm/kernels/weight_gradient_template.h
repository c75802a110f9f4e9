/* The functions of weight_gradient.c for one kind of processor. */

DECLARE_TILES(NAMED(tiles), NUMBER);

/* Pack PAIR rows of a panel. Rows and columns after the last of the matrix are zeros. */
INLINE void NAMED(pack_rows)(const NUMBER *from, int64_t stride, int64_t rows, int64_t columns, NUMBER *packed) {
    NUMBER numbers[PAIR][PANEL];
    if (rows < PAIR || columns < PANEL) {
        memset(numbers, 0, sizeof numbers);
        for (int64_t row = 0; row < least(rows, PAIR); row++)
            memcpy(numbers[row], from + row * stride, least(columns, PANEL) * sizeof *from);
        from = numbers[0], stride = PANEL;
    }
    for (int v = 0; v < VECTORS; v++) {
        Lanes pair[PAIR];
        for (int row = 0; row < PAIR; row++)
            pair[row] = LOAD_NUMBERS(from + row * stride + v * WIDTH);
        STORE_GROUPS(packed + v * WIDTH * PAIR, pair);
    }
}

/* Pack `rows` rows of a matrix into panels. */
TARGET static void NAMED(pack_block)(const NUMBER *matrix, int64_t stride, int64_t rows, int64_t columns, NUMBER *packed,
                                     int64_t panel_rows) {
    /* Row after row, because rows at a distance of a power of two compete for the same few lines of the cache. */
    for (int64_t row = 0; row < rows; row += PAIR)
        for (int64_t column = 0; column < columns; column += PANEL)
            NAMED(pack_rows)(matrix + row * stride + column, stride, rows - row, columns - column,
                             packed + column * panel_rows + row * PANEL);
}

/* Compute the sums for the columns of one left panel and of at most four right panels, over the packed rows. */
TARGET static void NAMED(panel_sums)(const NUMBER *left, int64_t left_columns, const NUMBER *right, int64_t right_columns,
                                     int64_t rows, int64_t panel_rows, float *sums, int64_t stride, int add) {
    const float zeros[COLUMNS] = {0};
    float scratch[PANEL * COLUMNS];
    const int64_t panels = (right_columns + PANEL - 1) / PANEL;
    const int whole = right_columns == panels * PANEL;
    if (add && !whole)
        for (int64_t r = 0; r < left_columns; r++)
            memcpy(scratch + r * COLUMNS, sums + r * stride, right_columns * sizeof *sums);
    for (int64_t row = 0; row < rows; row += INNER)
        NAMED(tiles)(left_columns, panels, (least(INNER, rows - row) + PAIR - 1) / PAIR, left + row * PANEL, PAIR,
                     PANEL * PAIR, (Panels){right + row * PANEL, NULL}, panel_rows * PANEL, whole ? sums : scratch, whole ? stride : COLUMNS,
                     add || row > 0 ? NULL : zeros);
    if (!whole)
        for (int64_t r = 0; r < left_columns; r++)
            memcpy(sums + r * stride, scratch + r * COLUMNS, right_columns * sizeof *sums);
}

static void NAMED(pack_left)(const void *arguments, int64_t first, int64_t last) {
    const Block *block = arguments;
    const WeightGradient *args = block->args;
    const int64_t panel = panel_rows(args);
    for (int64_t column = first * COLUMNS; column < least(last * COLUMNS, args->left_columns); column += COLUMNS)
        NAMED(pack_block)((const NUMBER *)args->left + block->row * args->left_stride + column, args->left_stride,
                          block->rows, least(COLUMNS, args->left_columns - column),
                          (NUMBER *)args->left_scratch + column * panel, panel);
}

static void NAMED(sum_columns)(const void *arguments, int64_t first, int64_t last) {
    const Block *block = arguments;
    const WeightGradient *args = block->args;
    const int64_t panel = panel_rows(args);
    NUMBER *packed = (NUMBER *)args->right_scratch + first * BLOCK * panel;
    for (int64_t column = first * BLOCK; column < least(last * BLOCK, args->right_columns); column += BLOCK) {
        const int64_t columns = least(BLOCK, args->right_columns - column);
        const NUMBER *right = (const NUMBER *)args->right + block->row * args->right_stride + column;
        NAMED(pack_block)(right, args->right_stride, block->rows, columns, packed, panel);
        for (int64_t row = 0; row < args->left_columns; row += PANEL)
            for (int64_t k = 0; k < columns; k += COLUMNS)
                NAMED(panel_sums)((const NUMBER *)args->left_scratch + row * panel, least(PANEL, args->left_columns - row),
                                  packed + k * panel, least(COLUMNS, columns - k), block->rows, panel,
                                  args->sums + row * args->sum_stride + column + k, args->sum_stride,
                                  args->add || block->row > 0);
    }
}

void NAMED(weight_gradient)(const WeightGradient *args) {
    int64_t left = (args->left_columns + COLUMNS - 1) / COLUMNS, right = (args->right_columns + BLOCK - 1) / BLOCK;
    for (int64_t row = 0; row < args->rows; row += ROWS) {
        const Block block = {args, row, least(ROWS, args->rows - row)};
        spacy_elmo_share_rows(args->threads, left, block.rows, NAMED(pack_left), &block);
        spacy_elmo_share_rows(args->threads, right, block.rows * args->left_columns, NAMED(sum_columns), &block);
    }
}
