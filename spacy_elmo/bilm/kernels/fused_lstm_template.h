/* The steps of one direction of an LSTM layer, in one type of numbers: fused_lstm.c.

   `dim` and `width` are multiples of the lanes; what is not there is zero. */

/* (rows, 64) sums <- start + left (rows, inner) right (inner, 64): the rows of `left` lie `stride` apart, `right` is a
   panel, and `start` (64,) is that of every row. */
TARGET static void NAMED(product)(int64_t rows, int64_t inner, const NUMBER *left, int64_t stride, const NUMBER *right,
                                  float *sums, const float *start) {
    for (int64_t k = 0; k < inner; k += INNER)
        NAMED(tiles)(rows, least(INNER, inner - k) / PAIR, left + k, stride, PAIR, right + k * PANEL, sums, PANEL,
                     k == 0 ? start : NULL);
}

/* The gates of sixteen cells of some rows, and their states; z (rows, 4 x 16) is what the activations are applied to. */
TARGET static void NAMED(gates_forward)(const FusedForward *args, int64_t rows, int64_t row, int64_t rank,
                                        int64_t cell, const float *z) {
    const int64_t dim = args->dim;
    const Lanes one = all_lanes(1.0f), clip = all_lanes(args->cell_clip);
    for (int64_t r = 0; r < rows; r++, z += PANEL) {
        float *state = args->state + (rank + r) * dim + cell;
        Lanes power_i = exponential_lanes(_mm512_loadu_ps(z), -1.0f, COARSE);
        Lanes power_j = exponential_lanes(_mm512_loadu_ps(z + LANES), -2.0f, COARSE);
        Lanes power_f = exponential_lanes(_mm512_loadu_ps(z + 2 * LANES), -1.0f, COARSE);
        Lanes power_o = exponential_lanes(_mm512_loadu_ps(z + 3 * LANES), -1.0f, COARSE);
        /* One division for three gates: yz times 1 / xyz is 1 / x. */
        Lanes below_i = one + power_i, below_j = one + power_j, below_f = one + power_f;
        Lanes all = reciprocal_lanes(below_i * below_j * below_f, COARSE);
        Lanes i = all * (below_j * below_f), f = all * (below_i * below_j);
        Lanes j = (one - power_j) * (all * (below_i * below_f));
        Lanes c = clipped_lanes(f * _mm512_loadu_ps(state) + i * j, clip);
        Lanes power_c = exponential_lanes(c, -2.0f, COARSE), below_c = one + power_c;
        Lanes both = reciprocal_lanes((one + power_o) * below_c, COARSE);
        _mm512_storeu_ps(state, c);
        STORE_NUMBERS((NUMBER *)args->hiddens + (row + r) * dim + cell, (one - power_c) * both);
        if (args->gates == NULL) continue;
        NUMBER *gates = (NUMBER *)args->gates + (row + r) * GATES * dim + cell;
        STORE_NUMBERS(gates, i);
        STORE_NUMBERS(gates + dim, j);
        STORE_NUMBERS(gates + 2 * dim, f);
        STORE_NUMBERS(gates + 3 * dim, both * below_c);
    }
}

/* The outputs of some rows. The first `continuing` of them are inputs of the next step, from row `next` on. */
TARGET static void NAMED(outputs)(const FusedForward *args, int64_t rows, int64_t row, int64_t continuing,
                                  int64_t next, float *sums) {
    const int64_t dim = args->dim, width = args->width;
    const NUMBER *hidden = (const NUMBER *)args->hiddens + row * dim;
    const Lanes clip = all_lanes(args->out_clip);
    const float zeros[PANEL] = {0};
    for (int64_t column = 0; column < width; column += PANEL) {
        if (args->projection != NULL)
            NAMED(product)(rows, dim, hidden, dim, (const NUMBER *)args->projection + column * dim, sums, zeros);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t k = column; k < least(width, column + PANEL); k += LANES) {
                Lanes h = args->projection == NULL ? LOAD_NUMBERS(hidden + r * dim + k)
                                                 : _mm512_loadu_ps(sums + r * PANEL + k - column);
                h = clipped_lanes(h, clip);
                _mm512_storeu_ps(args->outputs + (row + r) * width + k, h);
                if (r < continuing) STORE_NUMBERS((NUMBER *)args->xh + ((next + r) * 2 + 1) * width + k, h);
            }
    }
}

/* All steps of the sequences from `first` to `last`. */
TARGET static void NAMED(forward_sequences)(const FusedForward *args, int64_t first, int64_t last) {
    const int64_t dim = args->dim, width = args->width, inner = 2 * width;
    float sums[CHUNK * PANEL], bias[PANEL];
    int64_t offset = 0;
    for (int64_t step = 0; step < args->steps && args->rows[step] > first; step++) {
        int64_t row = offset + first, rows = least(args->rows[step], last) - first, next = row + args->rows[step];
        int64_t continuing = step + 1 < args->steps ? least(args->rows[step + 1], last) - first : 0;
        for (int64_t cell = 0; cell < dim; cell += LANES) {
            const NUMBER *panel = (const NUMBER *)args->weights + cell * GATES * inner;
            for (int gate = 0; gate < GATES; gate++)
                memcpy(bias + gate * LANES, args->bias + gate * dim + cell, LANES * sizeof *bias);
            for (int64_t start = 0; start < rows; start += CHUNK) {
                const NUMBER *x = (const NUMBER *)args->xh + (row + start) * inner;
                NAMED(product)(least(CHUNK, rows - start), inner, x, inner, panel, sums, bias);
                NAMED(gates_forward)(args, least(CHUNK, rows - start), row + start, first + start, cell, sums);
            }
        }
        for (int64_t start = 0; start < rows; start += CHUNK)
            NAMED(outputs)(args, least(CHUNK, rows - start), row + start, continuing - start, next + start, sums);
        if (args->cells != NULL)
            memcpy(args->cells + row * dim, args->state + first * dim, rows * dim * sizeof *args->cells);
        offset += args->rows[step];
    }
}

/* The gradients before the activations of sixteen cells of some rows, and of the previous cells: those of the first
   row begin at `previous_cells`, and dhidden (rows, 16) lies in rows that are `stride` apart. */
TARGET static void NAMED(gates_backward)(const FusedBackward *args, int64_t rows, int64_t row, int64_t rank, int64_t cell,
                                         const float *previous_cells, const float *dhidden, int64_t stride,
                                         float *dbias) {
    const int64_t dim = args->dim;
    const Lanes one = all_lanes(1.0f), clip = all_lanes(args->cell_clip);
    Lanes sum[GATES];
    for (int gate = 0; gate < GATES; gate++)
        sum[gate] = _mm512_loadu_ps(dbias + gate * dim + cell);
    for (int64_t r = 0; r < rows; r++) {
        const NUMBER *gates = (const NUMBER *)args->gates + (row + r) * GATES * dim + cell;
        float *dstate = args->dstate + (rank + r) * dim + cell;
        Lanes i = LOAD_NUMBERS(gates), j = LOAD_NUMBERS(gates + dim);
        Lanes f = LOAD_NUMBERS(gates + 2 * dim), o = LOAD_NUMBERS(gates + 3 * dim);
        Lanes c = _mm512_loadu_ps(args->cells + (row + r) * dim + cell);
        Lanes previous = _mm512_loadu_ps(previous_cells + r * dim + cell), dh = _mm512_loadu_ps(dhidden + r * stride);
        Lanes power_c = exponential_lanes(c, -2.0f, COARSE);
        Lanes tanh_c = (one - power_c) * reciprocal_lanes(one + power_c, COARSE);
        Lanes dc = _mm512_loadu_ps(dstate) + dh * o * (one - tanh_c * tanh_c);
        dc = unless_reached(dc, c, clip);
        _mm512_storeu_ps(dstate, dc * f);
        const Lanes gradients[GATES] = {
            dc * j * i * (one - i),
            dc * i * (one - j * j),
            dc * previous * f * (one - f),
            dh * tanh_c * o * (one - o),
        };
        for (int gate = 0; gate < GATES; gate++) {
            STORE_NUMBERS((NUMBER *)args->dgates + ((row + r) * GATES + gate) * dim + cell, gradients[gate]);
            sum[gate] += gradients[gate];
        }
    }
    for (int gate = 0; gate < GATES; gate++)
        _mm512_storeu_ps(dbias + gate * dim + cell, sum[gate]);
}

/* The gradients of some outputs: those given, and those through the next step. Where outputs were clipped there is none. */
TARGET static void NAMED(output_gradients)(const FusedBackward *args, int64_t rows, int64_t row, int64_t rank) {
    const int64_t width = args->width;
    const Lanes clip = all_lanes(args->out_clip);
    for (int64_t k = 0; k < rows * width; k += LANES) {
        float *dhidden = args->dhidden + rank * width + k;
        Lanes d = _mm512_loadu_ps(args->dgiven + row * width + k) + _mm512_loadu_ps(dhidden);
        d = unless_reached(d, _mm512_loadu_ps(args->outputs + row * width + k), clip);
        _mm512_storeu_ps(dhidden, d);
        STORE_NUMBERS((NUMBER *)args->doutputs + row * width + k, d);
    }
}

/* (rows, width) out <- the gradients of the gates by the panels of `weights`. */
TARGET static void NAMED(through_weights)(const FusedBackward *args, int64_t rows, int64_t row, const NUMBER *weights,
                                          float *out, float *sums) {
    const int64_t inner = GATES * args->dim, width = args->width;
    const float zeros[PANEL] = {0};
    for (int64_t column = 0; column < width; column += PANEL)
        for (int64_t start = 0; start < rows; start += CHUNK) {
            int64_t some = least(CHUNK, rows - start);
            const NUMBER *dgates = (const NUMBER *)args->dgates + (row + start) * inner;
            NAMED(product)(some, inner, dgates, inner, weights + column * inner, sums, zeros);
            for (int64_t r = 0; r < some; r++)
                memcpy(out + (start + r) * width + column, sums + r * PANEL,
                       least(PANEL, width - column) * sizeof *out);
        }
}

/* All steps of the sequences from `first` to `last`, the last step first. */
TARGET static void NAMED(backward_sequences)(const FusedBackward *args, int64_t first, int64_t last, float *dbias) {
    const int64_t dim = args->dim, width = args->width, inner = GATES * dim;
    const int64_t recurrent_offset = (width + PANEL - 1) / PANEL * PANEL * inner;
    const float zeros[PANEL] = {0};
    float sums[CHUNK * PANEL];
    int64_t offset = 0;
    for (int64_t step = 0; step < args->steps; step++)
        offset += args->rows[step];
    for (int64_t step = args->steps - 1; step >= 0; step--) {
        offset -= args->rows[step];
        int64_t row = offset + first, rows = least(args->rows[step], last) - first;
        if (rows <= 0) continue;
        /* The row of the same sequence one step earlier; before the first step no row has them. */
        const float *previous_cells =
            step == 0 ? args->first_cells + first * dim : args->cells + (row - args->rows[step - 1]) * dim;
        NAMED(output_gradients)(args, rows, row, first);
        for (int64_t panel = 0; panel < dim; panel += PANEL)
            for (int64_t start = 0; start < rows; start += CHUNK) {
                const NUMBER *doutputs = (const NUMBER *)args->doutputs + (row + start) * width;
                const float *dhidden = args->dhidden + (first + start) * width + panel;
                int64_t some = least(CHUNK, rows - start), stride = width;
                if (args->projection != NULL) {
                    NAMED(product)(some, width, doutputs, width, (const NUMBER *)args->projection + panel * width, sums,
                                   zeros);
                    dhidden = sums, stride = PANEL;
                }
                for (int64_t cell = panel; cell < least(dim, panel + PANEL); cell += LANES)
                    NAMED(gates_backward)(args, some, row + start, first + start, cell,
                                          previous_cells + start * dim, dhidden + cell - panel, stride, dbias);
            }
        NAMED(through_weights)(args, rows, row, (const NUMBER *)args->weights + recurrent_offset,
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
    spacy_elmo_share_rows(args->parts, args->parts, args->dim * args->steps, NAMED(forward_parts), args);
}

void NAMED(fused_backward)(const FusedBackward *args) {
    spacy_elmo_share_rows(args->parts, args->parts, args->dim * args->steps, NAMED(backward_parts), args);
}
