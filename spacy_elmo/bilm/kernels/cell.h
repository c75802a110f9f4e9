/* The gates of an LSTM step and their gradients, in one type of numbers: cell.c.

   Rows of all tensors lie end to end, and sizes are in elements. */

/* Number k of a row: its activated gates, and the new c. */
INLINE Cell NAMED(cell)(const LOW *x, const LOW *h, const float *bias, int64_t dim, int64_t k, float c, float clip) {
    float i = sigmoid(READ(x[k]) + READ(h[k]) + bias[k]);
    float j = hyperbolic(READ(x[dim + k]) + READ(h[dim + k]) + bias[dim + k]);
    float f = sigmoid(READ(x[2 * dim + k]) + READ(h[2 * dim + k]) + bias[2 * dim + k]);
    float o = sigmoid(READ(x[3 * dim + k]) + READ(h[3 * dim + k]) + bias[3 * dim + k]);
    return (Cell){i, j, f, o, clipped(f * c + i * j, clip)};
}

VARIANTS static void NAMED(forward_rows)(const void *arguments, int64_t first, int64_t last) {
    const Step step = *(const Step *)arguments;
    const int64_t dim = step.dim;
    const float clip = step.clip, *restrict bias = step.bias;
    for (int64_t row = first; row < last; row++) {
        const LOW *restrict x = (const LOW *)step.inputs + row * 4 * dim;
        const LOW *restrict h = (const LOW *)step.recurrent + row * 4 * dim;
        float *restrict c = step.state + row * dim;
        LOW *restrict hidden = (LOW *)step.hidden + row * dim;
        if (step.gates == NULL) {
            INDEPENDENT
            for (int64_t k = 0; k < dim; k++) {
                Cell cell = NAMED(cell)(x, h, bias, dim, k, c[k], clip);
                c[k] = cell.c;
                hidden[k] = WRITE(cell.o * hyperbolic(cell.c));
            }
            continue;
        }
        LOW *restrict gates = (LOW *)step.gates + row * 4 * dim;
        float *restrict cells = step.cells + row * dim;
        INDEPENDENT
        for (int64_t k = 0; k < dim; k++) {
            Cell cell = NAMED(cell)(x, h, bias, dim, k, c[k], clip);
            gates[k] = WRITE(cell.i), gates[dim + k] = WRITE(cell.j);
            gates[2 * dim + k] = WRITE(cell.f), gates[3 * dim + k] = WRITE(cell.o);
            c[k] = cells[k] = cell.c;
            hidden[k] = WRITE(cell.o * hyperbolic(cell.c));
        }
    }
}

/* `gates` and `cells` may be NULL. */
void NAMED(cell_forward)(int64_t threads, int64_t rows, int64_t dim, const LOW *inputs, const LOW *recurrent,
                         const float *bias, float clip, float *state, LOW *gates, float *cells, LOW *hidden) {
    const Step step = {dim, inputs, recurrent, bias, clip, state, gates, cells, hidden};
    spacy_elmo_share_rows(threads, rows, dim, NAMED(forward_rows), &step);
}

VARIANTS void NAMED(cell_backward)(int64_t rows, int64_t dim, const LOW *gates, const float *cells, const float *before,
                                   const LOW *dhidden, float clip, float *dstate, LOW *dgates, float *dbias) {
    for (int64_t row = 0; row < rows; row++) {
        const LOW *restrict gate = gates + row * 4 * dim;
        const float *restrict cell = cells + row * dim, *restrict previous = before + row * dim;
        const LOW *restrict dh = dhidden + row * dim;
        float *restrict dc = dstate + row * dim;
        LOW *restrict out = dgates + row * 4 * dim;
        INDEPENDENT
        for (int64_t k = 0; k < dim; k++) {
            float i = READ(gate[k]), j = READ(gate[dim + k]);
            float f = READ(gate[2 * dim + k]), o = READ(gate[3 * dim + k]);
            float squashed = hyperbolic(cell[k]), dout = READ(dh[k]);
            float d = dc[k] + dout * o * (1.0f - squashed * squashed);
            d = fabsf(cell[k]) >= clip ? 0.0f : d;
            dc[k] = d * f;
            float di = d * j * i * (1.0f - i), dj = d * i * (1.0f - j * j);
            float df = d * previous[k] * f * (1.0f - f), dgate = dout * squashed * o * (1.0f - o);
            out[k] = WRITE(di), out[dim + k] = WRITE(dj);
            out[2 * dim + k] = WRITE(df), out[3 * dim + k] = WRITE(dgate);
            dbias[k] += di, dbias[dim + k] += dj, dbias[2 * dim + k] += df, dbias[3 * dim + k] += dgate;
        }
    }
}
