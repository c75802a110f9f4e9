/* The functions of fused_lstm.c for one kind of processor. `dim` and `width` are multiples of 16; the padding is 0. */

DECLARE_TILES(NAMED(tiles), NUMBER);

/* Compute sums = start + left right, (rows, 16 panels). `left` is (rows, inner), and the distance of its rows is `stride`
   numbers. `start` (16 panels,) is added to every row; NULL: add to the numbers in `sums`. The panels have `panel_rows` rows. */
static void NAMED(product)(int64_t rows, int64_t inner, const NUMBER *left, int64_t stride, int64_t panels, Panels right,
                           int64_t panel_rows, float *sums, int64_t sum_step, const float *start) {
    for (int64_t k = 0; k < inner; k += INNER)
        NAMED(tiles)(rows, panels, least(INNER, inner - k) / PAIR, left + k, stride, PAIR,
                     panels_after(right, k * PANEL, sizeof *left), panel_rows * PANEL, sums, sum_step,
                     k == 0 ? start : NULL);
}

/* Convert a row of `columns` numbers, and fill it up to a multiple of 16 with zeros. */
INLINE void NAMED(convert)(const float *from, int64_t columns, NUMBER *to) {
    float numbers[PANEL] = {0};
    for (int64_t k = 0; k < columns; k += PANEL) {
        const float *panel = from + k;
        if (columns - k < PANEL) panel = memcpy(numbers, panel, (columns - k) * sizeof *panel);
        for (int v = 0; v < PANEL; v += WIDTH)
            STORE_NUMBERS(to + k + v, LOAD(panel + v));
    }
}

/* One direction of one layer; see FusedForward. */
typedef struct {
    const FusedForward *args;
    const LayerWeights *weights;
    const float *x;
    int64_t columns; /* of x */
    float *outputs, *h, *c;
    int residual;
    /* Of the current step, or of all steps for a backward pass. */
    NUMBER *xh, *hiddens;
    /* Of the steps whose inputs are known. */
    NUMBER *window;
    float *inputs;
} NAMED(Layer);

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

/* Compute the gates and states of 16 cells of some sequences from the gates before their activations, z (rows, 4 * 16). */
TARGET static void NAMED(gates_forward)(const NAMED(Layer) *layer, int64_t rows, int64_t row, int64_t rank, int64_t cell,
                                        const float *z, int64_t z_step) {
    const FusedForward *args = layer->args;
    const int64_t dim = args->dim;
    const Lanes clip = SPREAD((float)args->cell_clip);
    for (int64_t r = 0; r < rows; r++, z += z_step)
        for (int64_t k = 0; k < PANEL; k += WIDTH) {
            float *c = layer->c + (rank + r) * dim + cell + k;
            const Lanes sums[GATES] = {LOAD(z + k), LOAD(z + PANEL + k), LOAD(z + 2 * PANEL + k), LOAD(z + 3 * PANEL + k)};
            NAMED(Cells) cells = NAMED(cells)(sums, LOAD(c), clip);
            STORE(c, cells.c);
            STORE_NUMBERS(layer->hiddens + (row + r) * args->hidden_step + cell + k, cells.hidden);
            if (args->gates == NULL) continue;
            NUMBER *gates = (NUMBER *)args->gates + (row + r) * GATES * dim + cell + k;
            STORE_NUMBERS(gates, cells.i);
            STORE_NUMBERS(gates + dim, cells.j);
            STORE_NUMBERS(gates + 2 * dim, cells.f);
            STORE_NUMBERS(gates + 3 * dim, cells.o);
        }
}

/* Compute h of some sequences from `hidden`. The first `continuing` sequences have a next step, whose rows of xh start at
   `next`. */
TARGET static void NAMED(next_h)(const NAMED(Layer) *layer, int64_t rows, const NUMBER *hidden, float *h, int64_t continuing,
                                 NUMBER *next, float *sums) {
    const FusedForward *args = layer->args;
    const int64_t dim = args->dim, width = args->width, inner = args->x_width + width, hidden_step = args->hidden_step;
    const Panels projection = layer->weights->projection;
    const Lanes clip = SPREAD((float)args->out_clip);
    const float zeros[COLUMNS] = {0};
    for (int64_t column = 0; column < width; column += COLUMNS) {
        const int64_t columns = least(COLUMNS, width - column);
        if (projection.numbers != NULL)
            NAMED(product)(rows, dim, hidden, hidden_step, columns / PANEL,
                           panels_after(projection, column * dim, sizeof *hidden), dim, sums, COLUMNS, zeros);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t k = 0; k < columns; k += WIDTH) {
                Lanes x = projection.numbers == NULL ? LOAD_NUMBERS(hidden + r * hidden_step + column + k)
                                                     : LOAD(sums + r * COLUMNS + k);
                x = NAMED(clipped)(x, clip);
                STORE(h + r * width + column + k, x);
                if (r < continuing) STORE_NUMBERS(next + r * inner + args->x_width + column + k, x);
            }
    }
}

/* Compute b + x W_x for the sequences first, ..., last - 1 in the next steps, until the window is full or the sequences have
   ended. Return the step after these steps. */
TARGET static int64_t NAMED(inputs_of_steps)(const NAMED(Layer) *layer, int64_t step, int64_t offset, int64_t first,
                                             int64_t last) {
    const FusedForward *args = layer->args;
    const int64_t x_width = args->x_width, columns = layer->columns;
    int64_t count = 0;
    for (; step < args->steps && args->rows[step] > first; step++) {
        const int64_t rows = least(args->rows[step], last) - first;
        if (count + rows > WINDOW) break;
        for (int64_t r = 0; r < rows; r++)
            NAMED(convert)(layer->x + (offset + first + r) * columns, columns, layer->window + (count + r) * x_width);
        count += rows, offset += args->rows[step];
    }
    NAMED(product)(count, x_width, layer->window, x_width, args->dim / PANEL * GATES, layer->weights->gates,
                   x_width + args->width, layer->inputs, GATES * args->dim, layer->weights->bias);
    return step;
}

/* Run all steps of the sequences first, ..., last - 1 of one direction of one layer. */
TARGET static void NAMED(forward_sequences)(const NAMED(Layer) *layer, int64_t first, int64_t last) {
    const FusedForward *args = layer->args;
    const LayerWeights *weights = layer->weights;
    const int64_t dim = args->dim, width = args->width, columns = args->columns, inner = args->x_width + width;
    float scratch[CHUNK * COLUMNS], *known_inputs = layer->inputs;
    int64_t offset = 0, known_steps = 0;
    for (int64_t rank = first; rank < last; rank++)
        NAMED(convert)(layer->h + rank * width, width, layer->xh + rank * inner + args->x_width);
    for (int64_t step = 0; step < args->steps && args->rows[step] > first; step++) {
        const int64_t row = offset + first, rows = least(args->rows[step], last) - first;
        const int64_t continuing = step + 1 < args->steps ? least(args->rows[step + 1], last) - first : 0;
        /* Rows of xh and hiddens: they are only kept for a backward pass. */
        const int64_t here = args->gates == NULL ? first : row, next = args->gates == NULL ? first : row + args->rows[step];
        NUMBER *xh = layer->xh + here * inner;
        for (int64_t r = 0; r < rows; r++)
            NAMED(convert)(layer->x + (row + r) * layer->columns, layer->columns, xh + r * inner);
        const int few = rows <= FEW;
        if (few && step >= known_steps) {
            known_steps = NAMED(inputs_of_steps)(layer, step, offset, first, last);
            known_inputs = layer->inputs;
        }
        const int64_t known = few ? args->x_width : 0, sum_step = few ? GATES * dim : COLUMNS;
        for (int64_t k = 0; k < dim; k += PANEL) {
            /* Backwards at every second step, because the cache still has the last weights of the previous step. */
            const int64_t cell = few && step % 2 ? dim - PANEL - k : k;
            const Panels panels = panels_after(weights->gates, cell * GATES * inner + known * PANEL, sizeof *xh);
            float *sums = few ? known_inputs + cell * GATES : scratch;
            for (int64_t start = 0; start < rows; start += CHUNK) {
                const int64_t some = least(CHUNK, rows - start);
                NAMED(product)(some, inner - known, xh + start * inner + known, inner, GATES, panels, inner, sums, sum_step,
                               few ? NULL : weights->bias + cell * GATES);
                NAMED(gates_forward)(layer, some, here + start, first + start, cell, sums, sum_step);
            }
        }
        for (int64_t start = 0; start < rows; start += CHUNK)
            NAMED(next_h)(layer, least(CHUNK, rows - start), layer->hiddens + (here + start) * args->hidden_step,
                          layer->h + (first + start) * width, continuing - start, layer->xh + (next + start) * inner,
                          scratch);
        for (int64_t r = 0; r < rows; r++) {
            const float *h = layer->h + (first + r) * width, *x = layer->x + (row + r) * layer->columns;
            float *output = layer->outputs + (row + r) * columns;
            for (int64_t k = 0; k < columns; k++)
                output[k] = layer->residual ? h[k] + x[k] : h[k];
        }
        if (args->cells != NULL)
            memcpy(args->cells + row * dim, layer->c + first * dim, rows * dim * sizeof *args->cells);
        known_inputs += rows * GATES * dim;
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
                                          int64_t width, float *out, float *sums) {
    const int64_t inner = GATES * args->dim;
    const float zeros[COLUMNS] = {0};
    for (int64_t column = 0; column < width; column += COLUMNS)
        for (int64_t start = 0; start < rows; start += CHUNK) {
            int64_t some = least(CHUNK, rows - start), columns = least(COLUMNS, width - column);
            const NUMBER *dgates = (const NUMBER *)args->dgates + (row + start) * args->dgate_step;
            NAMED(product)(some, inner, dgates, args->dgate_step, columns / PANEL,
                           (Panels){weights + column * inner, NULL}, inner, sums, COLUMNS, zeros);
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
                                   (Panels){(const NUMBER *)args->projection + column * width, NULL}, width, sums, COLUMNS,
                                   zeros);
                    dhidden = sums, stride = COLUMNS;
                }
                for (int64_t k = 0; k < columns; k += PANEL)
                    NAMED(gates_backward)(args, some, row + start, first + start, column + k,
                                          previous_cells + start * dim, dhidden + k, stride, dbias);
            }
        NAMED(through_weights)(args, rows, row, (const NUMBER *)args->weights + args->x_width * inner, width,
                               args->dhidden + first * width, sums);
        if (args->dx != NULL)
            NAMED(through_weights)(args, rows, row, args->weights, args->x_width, args->dx + row * args->x_width, sums);
    }
}

/* Copy the inputs of the sequences first, ..., last - 1 of one direction. `types` and `x` are those of this direction. */
static void NAMED(look_up)(const FusedForward *args, int64_t first, int64_t last, const int64_t *types, float *x) {
    const int64_t columns = args->x_columns;
    for (int64_t step = 0, offset = 0; step < args->steps; offset += args->rows[step++])
        for (int64_t row = offset + first; row < offset + least(args->rows[step], last); row++)
            memcpy(x + row * columns, args->vectors + types[row] * columns, columns * sizeof *x);
}

static void NAMED(forward_part)(const FusedForward *args, int64_t part, int64_t direction) {
    const int64_t from = border_in_direction(args, direction, part), to = border_in_direction(args, direction, part + 1);
    const int64_t all = sum(args->steps, args->rows), size = all * args->columns;
    const int64_t window = WINDOW * args->x_width, inputs = WINDOW * GATES * args->dim, inner = args->x_width + args->width;
    float *x = args->values + direction * all * args->x_columns;
    NUMBER *numbers = (NUMBER *)(args->scratch + args->parts * inputs), *rest = numbers + args->parts * window;
    if (args->types != NULL) NAMED(look_up)(args, from, to, args->types + direction * all, x);
    for (int64_t level = 0; level < args->layers && from < to; level++) {
        const int64_t index = level * args->directions + direction, first = direction * args->sequences;
        NAMED(Layer) layer = {
            .args = args,
            .weights = args->weights + index,
            .x = level == 0 ? x : args->outputs + (index - args->directions) * size,
            .columns = level == 0 ? args->x_columns : args->columns,
            .outputs = args->outputs + index * size,
            .h = args->h + index * args->sequences * args->width,
            .c = args->c + index * args->sequences * args->dim,
            .residual = args->residual && level > 0,
            .xh = rest + first * inner,
            .hiddens = rest + args->directions * args->sequences * inner + first * args->hidden_step,
            .window = numbers + part * window,
            .inputs = args->scratch + part * inputs,
        };
        if (args->gates != NULL) layer.xh = args->xh, layer.hiddens = args->hiddens;
        NAMED(forward_sequences)(&layer, from, to);
    }
}

static void NAMED(forward_parts)(const void *arguments, int64_t first, int64_t last) {
    const FusedForward *args = arguments;
    for (int64_t part = first; part < last; part++)
        for (int64_t direction = 0; direction < args->directions; direction++)
            NAMED(forward_part)(args, part, direction);
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
