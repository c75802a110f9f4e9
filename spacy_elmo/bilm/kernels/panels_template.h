/* The functions of panels.c for one kind of processor. */

DECLARE_TILES(NAMED(tiles), NUMBER);

/* Compute `tiles` for numbers of rows and panels that the compiler knows. `half`: `right` has float16 numbers. */
INLINE void NAMED(tile)(const int rows, const int panels, const int half, int64_t groups, const NUMBER *left,
                        int64_t row_step, int64_t group_step, const void *right, int64_t panel_step, const char *ahead,
                        int64_t ahead_step, float *sums, int64_t sum_step, const float *start) {
    enum { MOST = 4 * VECTORS };
    const int vectors = panels * VECTORS;
    Lanes sum[TILE][MOST];
    for (int row = 0; row < rows; row++)
        for (int v = 0; v < vectors; v++)
            sum[row][v] = LOAD((start == NULL ? sums + row * sum_step : start) + v * WIDTH);
    for (int64_t k = 0; k < groups; k++, left += group_step, ahead += ahead_step) {
        __builtin_prefetch(ahead, 0, 3);
        Group column[MOST];
        for (int v = 0; v < vectors; v++) {
            const int64_t place = v / VECTORS * panel_step + (k * PANEL + v % VECTORS * WIDTH) * PAIR;
            column[v] = half ? LOAD_HALF((const uint16_t *)right + place) : LOAD_GROUPS((const NUMBER *)right + place);
        }
        for (int row = 0; row < rows; row++) {
            Group x = SPREAD_GROUP(left + row * row_step);
            for (int v = 0; v < vectors; v++)
                sum[row][v] = MULTIPLY_ADD(x, column[v], sum[row][v]);
        }
    }
    for (int row = 0; row < rows; row++)
        for (int v = 0; v < vectors; v++)
            STORE(sums + row * sum_step + v * WIDTH, sum[row][v]);
}

#define TILE_OF(n, together, half)                                                                                     \
    NAMED(tile)(n, together, half, groups, x, row_step, group_step, panels_here, panel_step, ahead, ahead_step, out,   \
                sum_step, begin)
#define TILES_OF(n)                                                                                                    \
    case n:                                                                                                            \
        if (n > TILE) break;                                                                                           \
        if (HALF && half && together > 1) TILE_OF(n, WIDE(n), 1);                                                      \
        else if (HALF && half) TILE_OF(n, 1, 1);                                                                       \
        else if (together > 1) TILE_OF(n, WIDE(n), 0);                                                                 \
        else TILE_OF(n, 1, 0);                                                                                         \
        break;

TARGET DECLARE_TILES(NAMED(tiles), NUMBER) {
    /* All tiles have about the same number of rows, because a tile of few rows waits for its additions. */
    const int64_t count = (rows + TILE - 1) / TILE, wide = WIDE(count ? (rows + count - 1) / count : 0);
    /* A single tile waits for the memory of the panels, several tiles for the conversion. */
    const int half = HALF && right.half != NULL && count == 1;
    const int64_t size = half ? sizeof *right.half : sizeof(NUMBER);
    for (int64_t panel = 0, together; panel < panels; panel += together) {
        together = panels - panel >= wide ? wide : 1;
        const char *panels_here = (half ? (const char *)right.half : (const char *)right.numbers) + panel * panel_step * size;
        const float *begin = start == NULL ? NULL : start + panel * PANEL;
        for (int64_t tile = 0; tile < count; tile++) {
            int64_t row = rows * tile / count;
            /* Each tile prefetches a part of one of the next panels, because the processor would do so too late. */
            const int64_t next = tile * together / count, first = (next * count + together - 1) / together;
            const int64_t sharing = ((next + 1) * count + together - 1) / together - first;
            const int64_t ahead_step = wide < 4 && sharing ? PANEL * PAIR * size / sharing : 0;
            const char *ahead = panels_here + (ahead_step ? together + next : 0) * panel_step * size +
                                (tile - first) * groups * ahead_step;
            const NUMBER *x = left + row * row_step;
            float *out = sums + row * sum_step + panel * PANEL;
            switch (rows * (tile + 1) / count - row) {
                TILES_OF(1)
                TILES_OF(2)
                TILES_OF(3)
                TILES_OF(4)
                TILES_OF(5)
                TILES_OF(6)
                TILES_OF(7)
                TILES_OF(8)
                TILES_OF(9)
                TILES_OF(10)
                TILES_OF(11)
                TILES_OF(12)
            }
        }
    }
}
#undef TILE_OF
#undef TILES_OF

/* Pack 16 rows of a panel. Rows after `inner` and columns after `columns` are zeros. */
INLINE void NAMED(pack_block)(int64_t inner, int64_t columns, const float *source, int64_t inner_step,
                              int64_t column_step, NUMBER *packed) {
    float block[PANEL][PANEL];
    if (inner < PANEL || columns < PANEL) memset(block, 0, sizeof block);
    inner = least(inner, PANEL), columns = least(columns, PANEL);
    if (column_step == 1)
        for (int64_t k = 0; k < inner; k++)
            memcpy(block[k], source + k * inner_step, columns * sizeof **block);
    else
        for (int64_t k = 0; k < inner; k++)
            for (int64_t column = 0; column < columns; column++)
                block[k][column] = source[k * inner_step + column * column_step];
    for (int k = 0; k < PANEL; k += PAIR)
        for (int v = 0; v < VECTORS; v++) {
            Lanes rows[PAIR];
            for (int next = 0; next < PAIR; next++)
                rows[next] = LOAD(block[k + next] + v * WIDTH);
            STORE_GROUPS(packed + k * PANEL + v * WIDTH * PAIR, rows);
        }
}

/* Pack a part of a matrix; see native.py. 16 rows of all panels are packed together, because these rows are neighbors in the
   memory of the matrix. */
TARGET void NAMED(pack_panels)(const Packing *args) {
    for (int64_t k = 0; k < args->inner; k += PANEL)
        for (int64_t panel = 0; panel < args->panels; panel++) {
            const int64_t inner = args->known_inner - k, first = panel / args->gates * PANEL, columns = args->columns - first;
            const float *source = args->source + k * args->inner_step + first * args->column_step +
                                  panel % args->gates * args->gate_step;
            NUMBER *packed = (NUMBER *)args->packed + panel * args->panel_step + k * PANEL;
            if (inner >= PANEL && columns >= PANEL)
                NAMED(pack_block)(PANEL, PANEL, source, args->inner_step, args->column_step, packed);
            else
                NAMED(pack_block)(inner < 0 ? 0 : inner, columns, source, args->inner_step, args->column_step, packed);
        }
}

#if PAIR == 1
/* Compute at most 64 columns of some rows of a product. Pack the right matrix here if it is not packed yet. */
TARGET static void NAMED(product_columns)(const Product *args, int64_t first_row, int64_t rows, int64_t column) {
    const int64_t columns = least(COLUMNS, args->columns - column), panels = (columns + PANEL - 1) / PANEL;
    float packed[INNER * COLUMNS], scratch[CHUNK * COLUMNS], start[COLUMNS] = {0};
    if (args->start != NULL) memcpy(start, args->start + column, columns * sizeof *start);
    for (int64_t k = 0; k == 0 || k < args->inner; k += INNER) {
        const int64_t inner = least(INNER, args->inner - k);
        const int64_t rows_of_panel = args->panels.numbers != NULL ? (args->inner + PANEL - 1) / PANEL * PANEL : INNER;
        const int64_t panel_step = rows_of_panel * PANEL;
        Panels right = {packed, NULL};
        if (args->panels.numbers != NULL)
            right = panels_after(args->panels, column / PANEL * panel_step + k * PANEL, sizeof *packed);
        else {
            const Packing packing = {
                panels, (inner + PANEL - 1) / PANEL * PANEL, inner, columns, 1,
                args->right + k * args->inner_step + column * args->column_step, args->inner_step, args->column_step, 0,
                packed, panel_step};
            NAMED(pack_panels)(&packing);
        }
        for (int64_t row = first_row; row < first_row + rows; row += CHUNK) {
            const int64_t some = least(CHUNK, first_row + rows - row), whole = columns == panels * PANEL;
            float *out = args->sums + row * args->sum_step + column, *sums = whole ? out : scratch;
            const int64_t step = whole ? args->sum_step : COLUMNS;
            if (!whole && k > 0)
                for (int64_t r = 0; r < some; r++)
                    memcpy(sums + r * step, out + r * args->sum_step, columns * sizeof *sums);
            NAMED(tiles)(some, panels, inner, args->left + row * args->row_step + k, args->row_step, 1, right,
                         panel_step, sums, step, k == 0 ? start : NULL);
            if (!whole)
                for (int64_t r = 0; r < some; r++)
                    memcpy(out + r * args->sum_step, sums + r * step, columns * sizeof *sums);
        }
    }
}

static void NAMED(product_by_columns)(const void *arguments, int64_t first, int64_t last) {
    const Product *args = arguments;
    for (int64_t block = first; block < last; block++)
        NAMED(product_columns)(args, 0, args->rows, block * COLUMNS);
}

static void NAMED(product_by_rows)(const void *arguments, int64_t first, int64_t last) {
    const Product *args = arguments;
    for (int64_t column = 0; column < args->columns; column += COLUMNS)
        NAMED(product_columns)(args, first, last - first, column);
}

/* Divide the columns among the threads, so that each panel is packed once. If there are few columns, divide the rows. */
void NAMED(product)(const Product *args) {
    const int64_t blocks = (args->columns + COLUMNS - 1) / COLUMNS;
    if (blocks >= 2 * args->threads || blocks > args->rows / CHUNK)
        spacy_elmo_share_rows(args->threads, blocks, args->rows * args->inner, NAMED(product_by_columns), args);
    else
        spacy_elmo_share_rows(args->threads, args->rows, args->columns * args->inner / COLUMNS, NAMED(product_by_rows),
                              args);
}
#endif
