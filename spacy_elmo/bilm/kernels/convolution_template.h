/* Convolutions over the characters of words and their maxima over the positions, in one type of numbers: convolution.c. */

/* The maxima of sixteen columns of sums (n, 64) and where they are, with those before; NaN is larger than any number. */
TARGET static inline __attribute__((always_inline)) void NAMED(update_maxima)(int64_t n, int64_t position,
                                                                              const float *sums, Lanes *best,
                                                                              __m512i *winner) {
    for (int64_t row = 0; row < n; row++) {
        Lanes value = _mm512_loadu_ps(sums + row * PANEL);
        __mmask16 better = _mm512_cmp_ps_mask(value, *best, _CMP_GT_OQ) | _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
        *best = _mm512_mask_mov_ps(*best, better, value);
        *winner = _mm512_mask_mov_epi32(*winner, better, _mm512_set1_epi32((int)(position + row)));
    }
}

TARGET static void NAMED(maxima_of_words)(const void *arguments, int64_t first, int64_t last) {
    const Convolution *args = arguments;
    const int64_t dim = args->dim;
    float sums[CHUNK * PANEL];
    NUMBER *x = (NUMBER *)args->scratch + first * args->columns * dim;
    for (int64_t word = first; word < last; word++) {
        const int32_t *ids = args->ids + word * args->columns;
        const int64_t length = args->lengths[word];
        for (int64_t k = 0; k < length; k++)
            memcpy(x + k * dim, (const NUMBER *)args->characters + ids[k] * dim, dim * sizeof *x);
        const NUMBER *panel = args->weights;
        const float *bias = args->biases;
        float *maxima = args->maxima + word * args->features;
        int32_t *winners = args->winners + word * args->features;
        for (int64_t group = 0; group < args->groups; group++) {
            const int64_t width = args->widths[group], filters = args->filters_per_group[group];
            const int64_t positions = length - width + 1;
            for (int64_t column = 0; column < filters; column += PANEL, panel += width * dim * PANEL, bias += PANEL) {
                Lanes best[VECTORS];
                __m512i winner[VECTORS];
                for (int v = 0; v < VECTORS; v++)
                    best[v] = all_lanes(-INFINITY), winner[v] = _mm512_setzero_si512();
                for (int64_t position = 0; position < positions; position += CHUNK) {
                    int64_t n = least(CHUNK, positions - position);
                    NAMED(tiles)(n, width * dim / PAIR, x + position * dim, dim, PAIR, panel, sums, PANEL, bias);
                    for (int v = 0; v < VECTORS; v++)
                        NAMED(update_maxima)(n, position, sums + v * LANES, best + v, winner + v);
                }
                for (int v = 0; v < VECTORS; v++) {
                    __mmask16 mask = mask_of(filters - column - v * LANES);
                    _mm512_mask_storeu_ps(maxima + column + v * LANES, mask, best[v]);
                    if (args->winners != NULL) _mm512_mask_storeu_epi32(winners + column + v * LANES, mask, winner[v]);
                }
            }
            maxima += filters, winners += filters;
        }
    }
}

void NAMED(convolution)(const Convolution *args) {
    spacy_elmo_share_rows(args->threads, args->words, args->features, NAMED(maxima_of_words), args);
}
