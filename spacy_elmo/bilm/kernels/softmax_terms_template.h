/* The exponentials of rows of logits, in one type of numbers: softmax_terms.c. */

VARIANTS void NAMED(softmax_terms)(int64_t rows, int64_t dim, NUMBER *logits, const float *bias, float *scratch,
                                   float *largest, float *sums) {
    for (int64_t row = 0; row < rows; row++) {
        NUMBER *restrict x = logits + row * dim;
        float *restrict raw = scratch;
        /* Where all logits are -infinity, too. */
        float most = -FLT_MAX, sum = 0.0f;
        BY_LANES(max, most)
        for (int64_t k = 0; k < dim; k++) {
            raw[k] = READ(x[k]) + bias[k];
            most = raw[k] > most ? raw[k] : most;
        }
        BY_LANES(+, sum)
        for (int64_t k = 0; k < dim; k++) {
            float term = exponential(raw[k] - most);
            sum += term;
            x[k] = WRITE(term);
        }
        largest[row] = most, sums[row] = sum;
    }
}
