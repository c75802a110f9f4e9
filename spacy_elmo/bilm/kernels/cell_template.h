/* The gates of an LSTM step and their gradients, in one type of numbers: cell.c.

   Rows of all tensors lie end to end, and sizes are in elements. */

/* Number k of a row: its activated gates, and the new c. */
INLINE Cell NAMED(cell)(const NUMBER *x, const NUMBER *h, const float *bias, int64_t dim, int64_t k, float c,
                        float clip) {
    float i = sigmoid(READ(x[k]) + READ(h[k]) + bias[k]);
    float j = tanh_(READ(x[dim + k]) + READ(h[dim + k]) + bias[dim + k]);
    float f = sigmoid(READ(x[2 * dim + k]) + READ(h[2 * dim + k]) + bias[2 * dim + k]);
    float o = sigmoid(READ(x[3 * dim + k]) + READ(h[3 * dim + k]) + bias[3 * dim + k]);
    return (Cell){i, j, f, o, clipped(f * c + i * j, clip)};
}

VARIANTS static void NAMED(forward_rows)(const void *arguments, int64_t first, int64_t last) {
    const Step step = *(const Step *)arguments;
    const int64_t dim = step.dim;
    const float clip = step.clip, *restrict bias = step.bias;
    for (int64_t row = first; row < last; row++) {
        const NUMBER *restrict x = (const NUMBER *)step.inputs + row * 4 * dim;
        const NUMBER *restrict h = (const NUMBER *)step.recurrent + row * 4 * dim;
        float *restrict c = step.state + row * dim;
        NUMBER *restrict hidden = (NUMBER *)step.hidden + row * dim;
        if (step.gates == NULL) {
            INDEPENDENT
            for (int64_t k = 0; k < dim; k++) {
                Cell cell = NAMED(cell)(x, h, bias, dim, k, c[k], clip);
                c[k] = cell.c;
                hidden[k] = WRITE(cell.o * tanh_(cell.c));
            }
            continue;
        }
        NUMBER *restrict gates = (NUMBER *)step.gates + row * 4 * dim;
        float *restrict cells = step.cells + row * dim;
        INDEPENDENT
        for (int64_t k = 0; k < dim; k++) {
            Cell cell = NAMED(cell)(x, h, bias, dim, k, c[k], clip);
            gates[k] = WRITE(cell.i), gates[dim + k] = WRITE(cell.j);
            gates[2 * dim + k] = WRITE(cell.f), gates[3 * dim + k] = WRITE(cell.o);
            c[k] = cells[k] = cell.c;
            hidden[k] = WRITE(cell.o * tanh_(cell.c));
        }
    }
}

/* `gates` and `cells` are both NULL or neither. */
void NAMED(cell_forward)(int64_t threads, int64_t rows, int64_t dim, const NUMBER *inputs, const NUMBER *recurrent,
                         const float *bias, float clip, float *state, NUMBER *gates, float *cells, NUMBER *hidden) {
    const Step step = {dim, inputs, recurrent, bias, clip, state, gates, cells, hidden};
    spacy_elmo_share_rows(threads, rows, dim, NAMED(forward_rows), &step);
}

/* `dstate` (rows, dim) is the gradient of c through the next step, and receives that of the previous c. */
VARIANTS void NAMED(cell_backward)(int64_t rows, int64_t dim, const NUMBER *gates, const float *cells,
                                   const float *previous_cells, const NUMBER *dhidden, float clip, float *dstate,
                                   NUMBER *dgates, float *dbias) {
    for (int64_t row = 0; row < rows; row++) {
        const NUMBER *restrict gate = gates + row * 4 * dim;
        const float *restrict cell = cells + row * dim, *restrict previous = previous_cells + row * dim;
        const NUMBER *restrict dhidden_row = dhidden + row * dim;
        float *restrict dstate_row = dstate + row * dim;
        NUMBER *restrict dgate = dgates + row * 4 * dim;
        INDEPENDENT
        for (int64_t k = 0; k < dim; k++) {
            float i = READ(gate[k]), j = READ(gate[dim + k]);
            float f = READ(gate[2 * dim + k]), o = READ(gate[3 * dim + k]);
            float tanh_c = tanh_(cell[k]), dh = READ(dhidden_row[k]);
            float dc = dstate_row[k] + dh * o * (1.0f - tanh_c * tanh_c);
            dc = fabsf(cell[k]) >= clip ? 0.0f : dc;
            dstate_row[k] = dc * f;
            float di = dc * j * i * (1.0f - i), dj = dc * i * (1.0f - j * j);
            float df = dc * previous[k] * f * (1.0f - f), dout_gate = dh * tanh_c * o * (1.0f - o);
            dgate[k] = WRITE(di), dgate[dim + k] = WRITE(dj);
            dgate[2 * dim + k] = WRITE(df), dgate[3 * dim + k] = WRITE(dout_gate);
            dbias[k] += di, dbias[dim + k] += dj, dbias[2 * dim + k] += df, dbias[3 * dim + k] += dout_gate;
        }
    }
}
