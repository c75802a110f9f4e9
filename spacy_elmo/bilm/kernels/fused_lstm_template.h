/* The functions of fused_lstm.c for one kind of processor. `dim` and `width` are multiples of 16; the padding is 0. */

DECLARE_TILES(NAMED(tiles), NUMBER);

/* Compute sums = start + left right, (rows, 16 panels). `left` is (rows, inner), and the distance of its rows is `stride`
   numbers. `start` (64,) is added to every row; NULL: add to the numbers in `sums`. The panels have `panel_rows` rows. */
static void NAMED(product)(int64_t rows, int64_t inner, const NUMBER *left, int64_t stride, int64_t panels,
                           const NUMBER *right, int64_t panel_rows, float *sums, const float *start) {
    for (int64_t k = 0; k < inner; k += INNER)
        NAMED(tiles)(rows, panels, least(INNER, inner - k) / PAIR, left + k, stride, PAIR, right + k * PANEL,
                     panel_rows * PANEL, sums, COLUMNS, k == 0 ? start : NULL);
}

/* Gates of one vector of cells after their activations, the new state c, and `hidden` = sigmoid(o) tanh(c). */
typedef struct {
    Lanes i, j, f, o, c, hidden;
} NAMED(Cells);

INLINE NAMED(Cells) NAMED(cells)(const Lanes z[GATES], Lanes state, Lanes clip) {
    const Lanes one = SPREAD(1.0f);
    Lanes power_i = NAMED(exponential)(z[0], -1.0f, 40.0f, COARSE);
    Lanes power_j = NAMED(exponential)(z[1], -2.0f, 40.0f, COARSE);
    Lanes power_f = NAMED(exponential)(z[2], -1.0f, 40.0f, COARSE);
    Lanes power_o = NAMED(exponential)(z[3], -1.0f, 40.0f, COARSE);
    /* One division serves three gates, because 1 / x = yz / (xyz). */
    Lanes below_i = one + power_i, below_j = one + power_j, below_f = one + power_f;
    Lanes all = RECIPROCAL(below_i * below_j * below_f);
    NAMED(Cells) cells;
    cells.i = all * (below_j * below_f), cells.f = all * (below_i * below_j);
    cells.j = (one - power_j) * (all * (below_i * below_f));
    cells.c = NAMED(clipped)(FMA(cells.f, state, cells.i * cells.j), clip);
    Lanes power_c = NAMED(exponential)(cells.c, -2.0f, 40.0f, COARSE), below_c = one + power_c;
    Lanes both = RECIPROCAL((one + power_o) * below_c);
    cells.o = both * below_c;
    cells.hidden = (one - power_c) * both;
    return cells;
}

/* Compute the gates and states of 16 cells of some rows from the gates before their activations, z (rows, 4 * 16). */
TARGET static void NAMED(gates_forward)(const FusedForward *args, int64_t rows, int64_t row, int64_t rank,
                                        int64_t cell, const float *z) {
    const int64_t dim = args->dim;
    const Lanes clip = SPREAD((float)args->cell_clip);
    for (int64_t r = 0; r < rows; r++, z += COLUMNS)
        for (int64_t k = 0; k < PANEL; k += WIDTH) {
            float *state = args->state + (rank + r) * dim + cell + k;
            const Lanes sums[GATES] = {LOAD(z + k), LOAD(z + PANEL + k), LOAD(z + 2 * PANEL + k), LOAD(z + 3 * PANEL + k)};
            NAMED(Cells) cells = NAMED(cells)(sums, LOAD(state), clip);
            STORE(state, cells.c);
            STORE_NUMBERS((NUMBER *)args->hiddens + (row + r) * args->hidden_step + cell + k, cells.hidden);
            if (args->gates == NULL) continue;
            NUMBER *gates = (NUMBER *)args->gates + (row + r) * GATES * dim + cell + k;
            STORE_NUMBERS(gates, cells.i);
            STORE_NUMBERS(gates + dim, cells.j);
            STORE_NUMBERS(gates + 2 * dim, cells.f);
            STORE_NUMBERS(gates + 3 * dim, cells.o);
        }
}

/* Compute the outputs of some rows. The first `continuing` sequences have a next step, whose rows start at `next`. */
TARGET static void NAMED(outputs)(const FusedForward *args, int64_t rows, int64_t row, int64_t continuing,
                                  int64_t next, float *sums) {
    const int64_t dim = args->dim, width = args->width, hidden_step = args->hidden_step;
    const NUMBER *hidden = (const NUMBER *)args->hiddens + row * hidden_step;
    const Lanes clip = SPREAD((float)args->out_clip);
    const float zeros[COLUMNS] = {0};
    for (int64_t column = 0; column < width; column += COLUMNS) {
        const int64_t columns = least(COLUMNS, width - column);
        if (args->projection != NULL)
            NAMED(product)(rows, dim, hidden, hidden_step, columns / PANEL,
                           (const NUMBER *)args->projection + column * dim, dim, sums, zeros);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t k = 0; k < columns; k += WIDTH) {
                Lanes h = args->projection == NULL ? LOAD_NUMBERS(hidden + r * hidden_step + column + k)
                                                   : LOAD(sums + r * COLUMNS + k);
                h = NAMED(clipped)(h, clip);
                STORE(args->outputs + (row + r) * width + column + k, h);
                if (r < continuing) STORE_NUMBERS((NUMBER *)args->xh + ((next + r) * 2 + 1) * width + column + k, h);
            }
    }
}

INLINE void NAMED(load_bias)(const FusedForward *args, int64_t cell, float *bias) {
    for (int gate = 0; gate < GATES; gate++)
        memcpy(bias + gate * PANEL, args->bias + gate * args->dim + cell, PANEL * sizeof *bias);
}

/* Compute b + x W_x for some rows of all steps. */
TARGET static void NAMED(inputs_of_rows)(const void *arguments, int64_t first, int64_t last) {
    const FusedForward *args = arguments;
    const int64_t width = args->width, inner = 2 * width, all = sum(args->steps, args->rows);
    float bias[COLUMNS];
    for (int64_t row = first; row < last; row += CHUNK)
        for (int64_t cell = 0; cell < args->dim; cell += PANEL) {
            NAMED(load_bias)(args, cell, bias);
            NAMED(product)(least(CHUNK, last - row), width, (const NUMBER *)args->xh + row * inner, inner, GATES,
                           (const NUMBER *)args->weights + cell * GATES * inner, inner,
                           args->inputs + (cell / PANEL * all + row) * COLUMNS, bias);
        }
}

/* Run all steps of the sequences first, ..., last - 1. */
TARGET static void NAMED(forward_sequences)(const FusedForward *args, int64_t first, int64_t last) {
    const int64_t dim = args->dim, width = args->width, inner = 2 * width, all = sum(args->steps, args->rows);
    /* Number of inner numbers whose products are already in `inputs`. The order of the sums is the same. */
    const int64_t known = args->inputs == NULL ? 0 : width;
    float scratch[CHUNK * COLUMNS], bias[COLUMNS];
    int64_t offset = 0;
    for (int64_t step = 0; step < args->steps && args->rows[step] > first; step++) {
        int64_t row = offset + first, rows = least(args->rows[step], last) - first, next = row + args->rows[step];
        int64_t continuing = step + 1 < args->steps ? least(args->rows[step + 1], last) - first : 0;
        for (int64_t cell = 0; cell < dim; cell += PANEL) {
            const NUMBER *panel = (const NUMBER *)args->weights + cell * GATES * inner + known * PANEL;
            NAMED(load_bias)(args, cell, bias);
            for (int64_t start = 0; start < rows; start += CHUNK) {
                const NUMBER *xh = (const NUMBER *)args->xh + (row + start) * inner + known;
                float *sums = known ? args->inputs + (cell / PANEL * all + row + start) * COLUMNS : scratch;
                NAMED(product)(least(CHUNK, rows - start), inner - known, xh, inner, GATES, panel, inner, sums,
                               known ? NULL : bias);
                NAMED(gates_forward)(args, least(CHUNK, rows - start), row + start, first + start, cell, sums);
            }
        }
        for (int64_t start = 0; start < rows; start += CHUNK)
            NAMED(outputs)(args, least(CHUNK, rows - start), row + start, continuing - start, next + start, scratch);
        if (args->cells != NULL)
            memcpy(args->cells + row * dim, args->state + first * dim, rows * dim * sizeof *args->cells);
        offset += args->rows[step];
    }
}

/* Compute the gradients of the gates of 16 cells of some rows, before their activations, and of the previous states.
   `previous_cells` points to the previous states of the first row. `dhidden` is (rows, 16), and the distance of its rows is
   `stride` numbers. */
TARGET static void NAMED(gates_backward)(const FusedBackward *args, int64_t rows, int64_t row, int64_t rank, int64_t cell,
                                         const float *previous_cells, const float *dhidden, int64_t stride,
                                         float *dbias) {
    const int64_t dim = args->dim;
    const Lanes one = SPREAD(1.0f), clip = SPREAD((float)args->cell_clip);
    for (int64_t k = 0; k < PANEL; k += WIDTH, cell += WIDTH) {
        Lanes sum[GATES];
        for (int gate = 0; gate < GATES; gate++)
            sum[gate] = LOAD(dbias + gate * dim + cell);
        for (int64_t r = 0; r < rows; r++) {
            const NUMBER *gates = (const NUMBER *)args->gates + (row + r) * GATES * dim + cell;
            float *dstate = args->dstate + (rank + r) * dim + cell;
            Lanes i = LOAD_NUMBERS(gates), j = LOAD_NUMBERS(gates + dim);
            Lanes f = LOAD_NUMBERS(gates + 2 * dim), o = LOAD_NUMBERS(gates + 3 * dim);
            Lanes c = LOAD(args->cells + (row + r) * dim + cell);
            Lanes previous = LOAD(previous_cells + r * dim + cell), dh = LOAD(dhidden + r * stride + k);
            Lanes tanh_c = NAMED(tanh)(c, COARSE);
            Lanes dc = FMA(dh * o, FMA(-tanh_c, tanh_c, one), LOAD(dstate));
            dc = NAMED(unless_reached)(dc, c, clip);
            STORE(dstate, dc * f);
            const Lanes gradients[GATES] = {
                dc * j * i * (one - i),
                dc * i * FMA(-j, j, one),
                dc * previous * f * (one - f),
                dh * tanh_c * o * (one - o),
            };
            for (int gate = 0; gate < GATES; gate++) {
                STORE_NUMBERS((NUMBER *)args->dgates + (row + r) * args->dgate_step + gate * dim + cell, gradients[gate]);
                sum[gate] += gradients[gate];
            }
        }
        for (int gate = 0; gate < GATES; gate++)
            STORE(dbias + gate * dim + cell, sum[gate]);
    }
}

/* Add the two gradients of some outputs: the given gradient, and the gradient through the next step. The gradient of a clipped
   output is 0. */
TARGET static void NAMED(output_gradients)(const FusedBackward *args, int64_t rows, int64_t row, int64_t rank) {
    const int64_t width = args->width;
    const Lanes clip = SPREAD((float)args->out_clip);
    for (int64_t k = 0; k < rows * width; k += WIDTH) {
        float *dhidden = args->dhidden + rank * width + k;
        Lanes d = LOAD(args->dgiven + row * width + k) + LOAD(dhidden);
        d = NAMED(unless_reached)(d, LOAD(args->outputs + row * width + k), clip);
        STORE(dhidden, d);
        STORE_NUMBERS((NUMBER *)args->doutputs + row * width + k, d);
    }
}

/* Compute out = dgates weights, (rows, width), for the panels `weights`. */
TARGET static void NAMED(through_weights)(const FusedBackward *args, int64_t rows, int64_t row, const NUMBER *weights,
                                          float *out, float *sums) {
    const int64_t inner = GATES * args->dim, width = args->width;
    const float zeros[COLUMNS] = {0};
    for (int64_t column = 0; column < width; column += COLUMNS)
        for (int64_t start = 0; start < rows; start += CHUNK) {
            int64_t some = least(CHUNK, rows - start), columns = least(COLUMNS, width - column);
            const NUMBER *dgates = (const NUMBER *)args->dgates + (row + start) * args->dgate_step;
            NAMED(product)(some, inner, dgates, args->dgate_step, columns / PANEL, weights + column * inner, inner,
                           sums, zeros);
            for (int64_t r = 0; r < some; r++)
                memcpy(out + (start + r) * width + column, sums + r * COLUMNS, columns * sizeof *out);
        }
}

/* Run the backward pass of these sequences, from the last step to the first. */
TARGET static void NAMED(backward_sequences)(const FusedBackward *args, int64_t first, int64_t last, float *dbias) {
    const int64_t dim = args->dim, width = args->width, inner = GATES * dim;
    const float zeros[COLUMNS] = {0};
    float sums[CHUNK * COLUMNS];
    int64_t offset = 0;
    for (int64_t step = 0; step < args->steps; step++)
        offset += args->rows[step];
    for (int64_t step = args->steps - 1; step >= 0; step--) {
        offset -= args->rows[step];
        int64_t row = offset + first, rows = least(args->rows[step], last) - first;
        if (rows <= 0) continue;
        /* The states of the same sequences one step earlier. For the first step, they are no packed rows. */
        const float *previous_cells =
            step == 0 ? args->first_cells + first * dim : args->cells + (row - args->rows[step - 1]) * dim;
        NAMED(output_gradients)(args, rows, row, first);
        for (int64_t column = 0; column < dim; column += COLUMNS)
            for (int64_t start = 0; start < rows; start += CHUNK) {
                const NUMBER *doutputs = (const NUMBER *)args->doutputs + (row + start) * width;
                const float *dhidden = args->dhidden + (first + start) * width + column;
                int64_t some = least(CHUNK, rows - start), columns = least(COLUMNS, dim - column), stride = width;
                if (args->projection != NULL) {
                    NAMED(product)(some, width, doutputs, width, columns / PANEL,
                                   (const NUMBER *)args->projection + column * width, width, sums, zeros);
                    dhidden = sums, stride = COLUMNS;
                }
                for (int64_t k = 0; k < columns; k += PANEL)
                    NAMED(gates_backward)(args, some, row + start, first + start, column + k,
                                          previous_cells + start * dim, dhidden + k, stride, dbias);
            }
        NAMED(through_weights)(args, rows, row, (const NUMBER *)args->weights + width * inner,
                               args->dhidden + first * width, sums);
        if (args->dx != NULL)
            NAMED(through_weights)(args, rows, row, args->weights, args->dx + row * width, sums);
    }
}

static void NAMED(forward_parts)(const void *arguments, int64_t first, int64_t last) {
    const FusedForward *args = arguments;
    for (int64_t part = first; part < last; part++)
        NAMED(forward_sequences)(args, border(args->steps, args->rows, part, args->parts),
                                 border(args->steps, args->rows, part + 1, args->parts));
}

static void NAMED(backward_parts)(const void *arguments, int64_t first, int64_t last) {
    const FusedBackward *args = arguments;
    for (int64_t part = first; part < last; part++)
        NAMED(backward_sequences)(args, border(args->steps, args->rows, part, args->parts),
                                  border(args->steps, args->rows, part + 1, args->parts),
                                  args->dbias + part * GATES * args->dim);
}

void NAMED(fused_forward)(const FusedForward *args) {
    if (args->inputs != NULL)
        spacy_elmo_share_rows(args->parts, sum(args->steps, args->rows), args->dim, NAMED(inputs_of_rows), args);
    spacy_elmo_share_rows(args->parts, args->parts, args->dim * args->steps, NAMED(forward_parts), args);
}

void NAMED(fused_backward)(const FusedBackward *args) {
    spacy_elmo_share_rows(args->parts, args->parts, args->dim * args->steps, NAMED(backward_parts), args);
}
