/* Convolutions over the characters of words and their maxima over the positions, in one type of numbers: convolution.c. */

/* The maxima of sixteen columns of sums (n, 64) and where they are, with those before; NaN is larger than any number. */
TARGET static inline __attribute__((always_inline)) void NAMED(raise_maxima)(int64_t n, int64_t position, const float *sums,
                                                                             Lanes *best, __m512i *winner) {
    for (int64_t row = 0; row < n; row++) {
        Lanes value = _mm512_loadu_ps(sums + row * PANEL);
        __mmask16 better = _mm512_cmp_ps_mask(value, *best, _CMP_GT_OQ) | _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
        *best = _mm512_mask_mov_ps(*best, better, value);
        *winner = _mm512_mask_mov_epi32(*winner, better, _mm512_set1_epi32((int)(position + row)));
    }
}

TARGET static void NAMED(maxima_of_words)(const void *arguments, int64_t first, int64_t last) {
    const Convolution *of = arguments;
    const int64_t dim = of->dim;
    float sums[CHUNK * PANEL];
    LOW *x = (LOW *)of->room + first * of->columns * dim;
    for (int64_t word = first; word < last; word++) {
        const int32_t *ids = of->ids + word * of->columns;
        const int64_t length = of->lengths[word];
        for (int64_t k = 0; k < length; k++)
            memcpy(x + k * dim, (const LOW *)of->characters + ids[k] * dim, dim * sizeof *x);
        const LOW *panel = of->weights;
        const float *bias = of->biases;
        float *maxima = of->maxima + word * of->features;
        int32_t *winners = of->winners + word * of->features;
        for (int64_t filter = 0; filter < of->filters; filter++) {
            const int64_t width = of->widths[filter], number = of->numbers[filter], positions = length - width + 1;
            for (int64_t column = 0; column < number; column += PANEL, panel += width * dim * PANEL, bias += PANEL) {
                Lanes best[VECTORS];
                __m512i winner[VECTORS];
                for (int v = 0; v < VECTORS; v++)
                    best[v] = all_lanes(-INFINITY), winner[v] = _mm512_setzero_si512();
                for (int64_t position = 0; position < positions; position += CHUNK) {
                    int64_t n = least(CHUNK, positions - position);
                    NAMED(tiles)(n, width * dim / PAIR, x + position * dim, dim, PAIR, panel, sums, PANEL, bias);
                    for (int v = 0; v < VECTORS; v++)
                        NAMED(raise_maxima)(n, position, sums + v * LANES, best + v, winner + v);
                }
                for (int v = 0; v < VECTORS; v++) {
                    __mmask16 there = mask_of(number - column - v * LANES);
                    _mm512_mask_storeu_ps(maxima + column + v * LANES, there, best[v]);
                    if (of->winners != NULL) _mm512_mask_storeu_epi32(winners + column + v * LANES, there, winner[v]);
                }
            }
            maxima += number, winners += number;
        }
    }
}

void NAMED(convolution)(const Convolution *of) {
    spacy_elmo_share_rows(of->threads, of->words, of->features, NAMED(maxima_of_words), of);
}
