/* The functions of rows.c for one kind of processor.

   A sum over a row is computed as 16 partial sums, so the order does not depend on the number of lanes. Partial sum k contains
   the numbers k, k + 16, k + 32, ... of the row. */

/* Add the 16 partial sums. */
INLINE float NAMED(total)(const Lanes parts[VECTORS]) {
    float sums[PANEL];
    for (int v = 0; v < VECTORS; v++)
        STORE(sums + v * WIDTH, parts[v]);
    for (int half = PANEL / 2; half > 0; half /= 2)
        for (int k = 0; k < half; k++)
            sums[k] += sums[k + half];
    return sums[0];
}

/* Read 16 numbers of a row. If only `count` numbers are left, fill up with `other`. */
INLINE void NAMED(load_part)(const float *from, int64_t count, float other, Lanes to[VECTORS]) {
    float numbers[PANEL];
    if (count < PANEL) {
        for (int k = 0; k < PANEL; k++)
            numbers[k] = k < count ? from[k] : other;
        from = numbers;
    }
    for (int v = 0; v < VECTORS; v++)
        to[v] = LOAD(from + v * WIDTH);
}

/* Write the first `count` of 16 numbers, or all of them. */
INLINE void NAMED(store_part)(const Lanes from[VECTORS], int64_t count, float *to) {
    float numbers[PANEL];
    for (int v = 0; v < VECTORS; v++)
        STORE((count < PANEL ? numbers : to) + v * WIDTH, from[v]);
    if (count < PANEL) memcpy(to, numbers, count * sizeof *to);
}

#if PAIR == 1
TARGET static void NAMED(highway_rows)(const void *arguments, int64_t first, int64_t last) {
    const Highway *args = arguments;
    const int64_t dim = args->dim;
    const Lanes one = SPREAD(1.0f), zero = SPREAD(0.0f);
    for (int64_t row = first; row < last; row++)
        for (int64_t k = 0; k < dim; k += PANEL) {
            float *carries = args->gates + row * 2 * dim + k;
            const int64_t count = least(PANEL, dim - k);
            Lanes carry[VECTORS], transformed[VECTORS], x[VECTORS];
            NAMED(load_part)(carries, count, 0.0f, carry);
            NAMED(load_part)(carries + dim, count, 0.0f, transformed);
            NAMED(load_part)(args->x + row * dim + k, count, 0.0f, x);
            for (int v = 0; v < VECTORS; v++) {
                carry[v] = RECIPROCAL(one + NAMED(exponential)(carry[v], -1.0f, 40.0f, 0));
                transformed[v] = MORE(zero, transformed[v]);
                x[v] = FMA(carry[v], transformed[v] - x[v], x[v]);
            }
            NAMED(store_part)(carry, count, carries);
            NAMED(store_part)(transformed, count, carries + dim);
            NAMED(store_part)(x, count, args->out + row * dim + k);
        }
}

/* out = x + c (t - x), for the carry gate c = sigmoid(...) and the transformation t = relu(...). */
void NAMED(highway)(const Highway *args) {
    spacy_elmo_share_rows(args->threads, args->rows, args->dim, NAMED(highway_rows), args);
}

TARGET static void NAMED(products_of_rows)(const void *arguments, int64_t first, int64_t last) {
    const RowProducts *args = arguments;
    for (int64_t row = first; row < last; row++) {
        Lanes parts[VECTORS], left[VECTORS], right[VECTORS];
        for (int v = 0; v < VECTORS; v++)
            parts[v] = SPREAD(0.0f);
        for (int64_t k = 0; k < args->dim; k += PANEL) {
            NAMED(load_part)(args->left + row * args->dim + k, args->dim - k, 0.0f, left);
            NAMED(load_part)(args->right + row * args->dim + k, args->dim - k, 0.0f, right);
            for (int v = 0; v < VECTORS; v++)
                parts[v] = FMA(left[v], right[v], parts[v]);
        }
        args->sums[row] = NAMED(total)(parts);
    }
}

/* sums = the dot product of each row of `left` and the same row of `right`. */
void NAMED(row_products)(const RowProducts *args) {
    spacy_elmo_share_rows(args->threads, args->rows, args->dim / PANEL, NAMED(products_of_rows), args);
}

#endif

/* Read 16 logits of a row and add their biases. After the last logit, fill up with -infinity. */
INLINE void NAMED(load_logits)(const Softmax *args, int64_t row, int64_t k, Lanes raw[VECTORS]) {
    const int64_t count = least(PANEL, args->dim - k);
    NUMBER numbers[PANEL] = {0};
    const NUMBER *logits = (const NUMBER *)args->logits + row * args->dim + k;
    if (count < PANEL) {
        memcpy(numbers, logits, count * sizeof *numbers);
        logits = numbers;
    }
    NAMED(load_part)(args->bias + k, count, -INFINITY, raw);
    for (int v = 0; v < VECTORS; v++)
        raw[v] = LOAD_NUMBERS(logits + v * WIDTH) + raw[v];
}

TARGET static void NAMED(terms_of_rows)(const void *arguments, int64_t first, int64_t last) {
    const Softmax *args = arguments;
    const int64_t dim = args->dim;
    for (int64_t row = first; row < last; row++) {
        Lanes raw[VECTORS], parts[VECTORS];
        float numbers[PANEL], most = -FLT_MAX; /* the result if all logits are -infinity */
        for (int v = 0; v < VECTORS; v++)
            parts[v] = SPREAD(most);
        for (int64_t k = 0; k < dim; k += PANEL) {
            NAMED(load_logits)(args, row, k, raw);
            for (int v = 0; v < VECTORS; v++)
                parts[v] = MORE(raw[v], parts[v]);
        }
        for (int v = 0; v < VECTORS; v++)
            STORE(numbers + v * WIDTH, parts[v]);
        for (int k = 0; k < PANEL; k++)
            most = numbers[k] > most ? numbers[k] : most;
        for (int v = 0; v < VECTORS; v++)
            parts[v] = SPREAD(0.0f);
        for (int64_t k = 0; k < dim; k += PANEL) {
            NUMBER terms[PANEL];
            NAMED(load_logits)(args, row, k, raw);
            for (int v = 0; v < VECTORS; v++) {
                Lanes x = raw[v] - SPREAD(most), term = NAMED(exponential)(x, 1.0f, 125.0f, 0);
                /* e^-infinity is 0. */
                term = (Lanes)((Bits)term & ~(x < SPREAD(-FLT_MAX)));
                parts[v] += term;
                STORE_NUMBERS(terms + v * WIDTH, term);
            }
            memcpy((NUMBER *)args->logits + row * dim + k, terms, least(PANEL, dim - k) * sizeof *terms);
        }
        const float sum = args->sums[row] = NAMED(total)(parts);
        args->log_sums[row] = sum > 0.0f ? (float)(most + logarithm(sum)) : sum == 0.0f ? -INFINITY : sum;
    }
}

/* terms = e^(logit + bias - largest), where `largest` is the maximum of logit + bias in the row. */
void NAMED(softmax_terms)(const Softmax *args) {
    spacy_elmo_share_rows(args->threads, args->rows, args->dim / 2, NAMED(terms_of_rows), args);
}
