/* The steps of one direction of an LSTM layer, in one type of numbers: fused_lstm.c.

   `dim` and `width` are multiples of the lanes; what is not there is zero. */

/* (rows, 64) sums <- start + left (rows, inner) right (inner, 64): the rows of `left` lie `stride` apart, `right` is a
   panel, and `start` (64,) is that of every row. */
TARGET static void NAMED(product)(int64_t rows, int64_t inner, const LOW *left, int64_t stride, const LOW *right,
                                  float *sums, const float *start) {
    for (int64_t k = 0; k < inner; k += INNER)
        NAMED(tiles)(rows, least(INNER, inner - k) / PAIR, left + k, stride, PAIR, right + k * PANEL, sums, PANEL,
                     k == 0 ? start : NULL);
}

/* The gates of sixteen cells of some rows, and their states; z (rows, 4 x 16) is what the activations are applied to. */
TARGET static void NAMED(gates_forward)(const FusedForward *of, int64_t rows, int64_t row, int64_t rank, int64_t cell,
                                        const float *z) {
    const int64_t dim = of->dim;
    const Lanes one = all_lanes(1.0f), clip = all_lanes(of->cell_clip);
    for (int64_t r = 0; r < rows; r++, z += PANEL) {
        float *state = of->state + (rank + r) * dim + cell;
        Lanes power_i = exponential_lanes(_mm512_loadu_ps(z), -1.0f);
        Lanes power_j = exponential_lanes(_mm512_loadu_ps(z + LANES), -2.0f);
        Lanes power_f = exponential_lanes(_mm512_loadu_ps(z + 2 * LANES), -1.0f);
        Lanes power_o = exponential_lanes(_mm512_loadu_ps(z + 3 * LANES), -1.0f);
        /* One division for three gates: yz times 1 / xyz is 1 / x. */
        Lanes below_i = one + power_i, below_j = one + power_j, below_f = one + power_f;
        Lanes all = reciprocal_lanes(below_i * below_j * below_f);
        Lanes i = all * (below_j * below_f), f = all * (below_i * below_j);
        Lanes j = (one - power_j) * (all * (below_i * below_f));
        Lanes c = clipped_lanes(f * _mm512_loadu_ps(state) + i * j, clip);
        Lanes power_c = exponential_lanes(c, -2.0f), below_c = one + power_c;
        Lanes both = reciprocal_lanes((one + power_o) * below_c);
        _mm512_storeu_ps(state, c);
        STORE_LOW((LOW *)of->hiddens + (row + r) * dim + cell, (one - power_c) * both);
        if (of->gates == NULL) continue;
        LOW *gates = (LOW *)of->gates + (row + r) * VECTORS * dim + cell;
        STORE_LOW(gates, i);
        STORE_LOW(gates + dim, j);
        STORE_LOW(gates + 2 * dim, f);
        STORE_LOW(gates + 3 * dim, both * below_c);
    }
}

/* The outputs of some rows, the first `later` of which are inputs of the next step, from row `next` on. */
TARGET static void NAMED(outputs)(const FusedForward *of, int64_t rows, int64_t row, int64_t later, int64_t next,
                                  float *sums) {
    const int64_t dim = of->dim, width = of->width;
    const LOW *hidden = (const LOW *)of->hiddens + row * dim;
    const Lanes clip = all_lanes(of->out_clip);
    const float zeros[PANEL] = {0};
    for (int64_t column = 0; column < width; column += PANEL) {
        if (of->projection != NULL)
            NAMED(product)(rows, dim, hidden, dim, (const LOW *)of->projection + column * dim, sums, zeros);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t k = column; k < least(width, column + PANEL); k += LANES) {
                Lanes h = of->projection == NULL ? LOAD_LOW(hidden + r * dim + k)
                                                 : _mm512_loadu_ps(sums + r * PANEL + k - column);
                h = clipped_lanes(h, clip);
                _mm512_storeu_ps(of->outputs + (row + r) * width + k, h);
                if (r < later) STORE_LOW((LOW *)of->xh + ((next + r) * 2 + 1) * width + k, h);
            }
    }
}

/* All steps of the sequences from `first` to `last`. */
TARGET static void NAMED(forward_sequences)(const FusedForward *of, int64_t first, int64_t last) {
    const int64_t dim = of->dim, width = of->width, inner = 2 * width;
    float sums[CHUNK * PANEL], bias[PANEL];
    int64_t offset = 0;
    for (int64_t step = 0; step < of->steps && of->rows[step] > first; step++) {
        int64_t row = offset + first, rows = least(of->rows[step], last) - first, next = row + of->rows[step];
        int64_t later = step + 1 < of->steps ? least(of->rows[step + 1], last) - first : 0;
        for (int64_t cell = 0; cell < dim; cell += LANES) {
            const LOW *panel = (const LOW *)of->weights + cell * VECTORS * inner;
            for (int v = 0; v < VECTORS; v++)
                memcpy(bias + v * LANES, of->bias + v * dim + cell, LANES * sizeof *bias);
            for (int64_t start = 0; start < rows; start += CHUNK) {
                const LOW *x = (const LOW *)of->xh + (row + start) * inner;
                NAMED(product)(least(CHUNK, rows - start), inner, x, inner, panel, sums, bias);
                NAMED(gates_forward)(of, least(CHUNK, rows - start), row + start, first + start, cell, sums);
            }
        }
        for (int64_t start = 0; start < rows; start += CHUNK)
            NAMED(outputs)(of, least(CHUNK, rows - start), row + start, later - start, next + start, sums);
        if (of->cells != NULL) memcpy(of->cells + row * dim, of->state + first * dim, rows * dim * sizeof *of->cells);
        offset += of->rows[step];
    }
}

/* The gradients before the activations of sixteen cells of some rows, and of the cells before; `before` is where those
   begin, and dhidden (rows, 16) lies in rows that are `stride` apart. */
TARGET static void NAMED(gates_backward)(const FusedBackward *of, int64_t rows, int64_t row, int64_t rank, int64_t cell,
                                         const float *before, const float *dhidden, int64_t stride, float *dbias) {
    const int64_t dim = of->dim;
    const Lanes one = all_lanes(1.0f), clip = all_lanes(of->cell_clip);
    Lanes sum[VECTORS];
    for (int v = 0; v < VECTORS; v++)
        sum[v] = _mm512_loadu_ps(dbias + v * dim + cell);
    for (int64_t r = 0; r < rows; r++) {
        const LOW *gates = (const LOW *)of->gates + (row + r) * VECTORS * dim + cell;
        float *state = of->dstate + (rank + r) * dim + cell;
        Lanes i = LOAD_LOW(gates), j = LOAD_LOW(gates + dim);
        Lanes f = LOAD_LOW(gates + 2 * dim), o = LOAD_LOW(gates + 3 * dim);
        Lanes c = _mm512_loadu_ps(of->cells + (row + r) * dim + cell);
        Lanes previous = _mm512_loadu_ps(before + r * dim + cell), dh = _mm512_loadu_ps(dhidden + r * stride);
        Lanes power_c = exponential_lanes(c, -2.0f);
        Lanes squashed = (one - power_c) * reciprocal_lanes(one + power_c);
        Lanes dc = _mm512_loadu_ps(state) + dh * o * (one - squashed * squashed);
        dc = unless_reached(dc, c, clip);
        _mm512_storeu_ps(state, dc * f);
        const Lanes gradients[VECTORS] = {
            dc * j * i * (one - i),
            dc * i * (one - j * j),
            dc * previous * f * (one - f),
            dh * squashed * o * (one - o),
        };
        for (int v = 0; v < VECTORS; v++) {
            STORE_LOW((LOW *)of->dgates + ((row + r) * VECTORS + v) * dim + cell, gradients[v]);
            sum[v] += gradients[v];
        }
    }
    for (int v = 0; v < VECTORS; v++)
        _mm512_storeu_ps(dbias + v * dim + cell, sum[v]);
}

/* The gradients of some outputs: those given, and those through the next step. Where outputs were clipped there is none. */
TARGET static void NAMED(output_gradients)(const FusedBackward *of, int64_t rows, int64_t row, int64_t rank) {
    const int64_t width = of->width;
    const Lanes clip = all_lanes(of->out_clip);
    for (int64_t k = 0; k < rows * width; k += LANES) {
        float *later = of->dhidden + rank * width + k;
        Lanes d = _mm512_loadu_ps(of->dgiven + row * width + k) + _mm512_loadu_ps(later);
        d = unless_reached(d, _mm512_loadu_ps(of->outputs + row * width + k), clip);
        _mm512_storeu_ps(later, d);
        STORE_LOW((LOW *)of->doutputs + row * width + k, d);
    }
}

/* (rows, width) out <- the gradients of the gates by the panels of `weights`. */
TARGET static void NAMED(through_weights)(const FusedBackward *of, int64_t rows, int64_t row, const LOW *weights,
                                          float *out, float *sums) {
    const int64_t inner = VECTORS * of->dim, width = of->width;
    const float zeros[PANEL] = {0};
    for (int64_t column = 0; column < width; column += PANEL)
        for (int64_t start = 0; start < rows; start += CHUNK) {
            int64_t some = least(CHUNK, rows - start);
            const LOW *dgates = (const LOW *)of->dgates + (row + start) * inner;
            NAMED(product)(some, inner, dgates, inner, weights + column * inner, sums, zeros);
            for (int64_t r = 0; r < some; r++)
                memcpy(out + (start + r) * width + column, sums + r * PANEL,
                       least(PANEL, width - column) * sizeof *out);
        }
}

/* All steps of the sequences from `first` to `last`, the last step first. */
TARGET static void NAMED(backward_sequences)(const FusedBackward *of, int64_t first, int64_t last, float *dbias) {
    const int64_t dim = of->dim, width = of->width, inner = VECTORS * dim;
    const int64_t weight = (width + PANEL - 1) / PANEL * PANEL * inner;
    const float zeros[PANEL] = {0};
    float sums[CHUNK * PANEL];
    int64_t offset = 0;
    for (int64_t step = 0; step < of->steps; step++)
        offset += of->rows[step];
    for (int64_t step = of->steps - 1; step >= 0; step--) {
        offset -= of->rows[step];
        int64_t row = offset + first, rows = least(of->rows[step], last) - first;
        if (rows <= 0) continue;
        const float *before = step == 0 ? of->first_cells + first * dim : of->cells + (row - of->rows[step - 1]) * dim;
        NAMED(output_gradients)(of, rows, row, first);
        for (int64_t panel = 0; panel < dim; panel += PANEL)
            for (int64_t start = 0; start < rows; start += CHUNK) {
                const LOW *doutputs = (const LOW *)of->doutputs + (row + start) * width;
                const float *dhidden = of->dhidden + (first + start) * width + panel;
                int64_t some = least(CHUNK, rows - start), stride = width;
                if (of->projection != NULL) {
                    NAMED(product)(some, width, doutputs, width, (const LOW *)of->projection + panel * width, sums, zeros);
                    dhidden = sums, stride = PANEL;
                }
                for (int64_t cell = panel; cell < least(dim, panel + PANEL); cell += LANES)
                    NAMED(gates_backward)(of, some, row + start, first + start, cell, before + start * dim,
                                          dhidden + cell - panel, stride, dbias);
            }
        NAMED(through_weights)(of, rows, row, (const LOW *)of->weights + weight, of->dhidden + first * width, sums);
        if (of->dx != NULL)
            NAMED(through_weights)(of, rows, row, of->weights, of->dx + row * width, sums);
    }
}

static void NAMED(forward_parts)(const void *arguments, int64_t first, int64_t last) {
    const FusedForward *of = arguments;
    for (int64_t part = first; part < last; part++)
        NAMED(forward_sequences)(of, border(of->steps, of->rows, part, of->parts),
                                 border(of->steps, of->rows, part + 1, of->parts));
}

static void NAMED(backward_parts)(const void *arguments, int64_t first, int64_t last) {
    const FusedBackward *of = arguments;
    for (int64_t part = first; part < last; part++)
        NAMED(backward_sequences)(of, border(of->steps, of->rows, part, of->parts),
                                  border(of->steps, of->rows, part + 1, of->parts),
                                  of->dbias + part * VECTORS * of->dim);
}

void NAMED(fused_forward)(const FusedForward *of) {
    spacy_elmo_share_rows(of->parts, of->parts, of->dim * of->steps, NAMED(forward_parts), of);
}

void NAMED(fused_backward)(const FusedBackward *of) {
    spacy_elmo_share_rows(of->parts, of->parts, of->dim * of->steps, NAMED(backward_parts), of);
}
