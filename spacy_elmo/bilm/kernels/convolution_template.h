/* The functions of convolution.c for one kind of processor. */

DECLARE_TILES(NAMED(tiles), NUMBER);

/* Update the maxima of some columns, and their positions, with new sums (n, 64). NaN is larger than any number. */
INLINE void NAMED(update_maxima)(int64_t n, int64_t position, const float *sums, Lanes *best, Bits *winner,
                                 const int with_winners) {
    for (int64_t row = 0; row < n; row++) {
        Lanes value = LOAD(sums + row * COLUMNS);
        Bits better = (value > *best) | (value != value);
        *best = NAMED(selected)(better, value, *best);
        if (with_winners) *winner = (better & ((Bits){0} + (int32_t)(position + row))) | (~better & *winner);
    }
}

/* Apply the activation to the maxima of at most 16 filters, and write them. */
INLINE void NAMED(store_maxima)(const Convolution *args, int64_t count, const Lanes *best, const Bits *winner,
                                float *maxima, int32_t *winners) {
    float numbers[PANEL];
    int32_t places[PANEL];
    for (int v = 0; v < VECTORS; v++) {
        Lanes x = best[v];
        if (args->activation == RELU) x = MORE(SPREAD(0.0f), x);
        if (args->activation == TANH) x = NAMED(tanh)(x, 0);
        STORE(numbers + v * WIDTH, x);
        memcpy(places + v * WIDTH, winner + v, sizeof *winner);
    }
    memcpy(maxima, numbers, count * sizeof *maxima);
    if (args->winners != NULL) memcpy(winners, places, count * sizeof *winners);
}

TARGET static void NAMED(maxima_of_words)(const void *arguments, int64_t first, int64_t last) {
    const Convolution *args = arguments;
    const int64_t dim = args->dim;
    float sums[CHUNK * COLUMNS];
    NUMBER *x = (NUMBER *)args->scratch + first * args->columns * dim;
    for (int64_t word = first; word < last; word++) {
        const int32_t *ids = args->ids + word * args->columns;
        const int64_t length = args->lengths[word];
        for (int64_t k = 0; k < length; k++)
            memcpy(x + k * dim, (const NUMBER *)args->characters + ids[k] * dim, dim * sizeof *x);
        const NUMBER *right = args->weights;
        const float *bias = args->biases;
        float *maxima = args->maxima + word * args->features;
        int32_t *winners = args->winners + word * args->features;
        for (int64_t group = 0; group < args->groups; group++) {
            const int64_t inner = args->widths[group] * dim, filters = args->filters_per_group[group];
            const int64_t positions = length - args->widths[group] + 1;
            for (int64_t column = 0; column < filters; column += COLUMNS) {
                const int64_t panels = least(COLUMNS / PANEL, (filters - column + PANEL - 1) / PANEL);
                Lanes best[4 * VECTORS];
                Bits winner[4 * VECTORS] = {{0}};
                for (int v = 0; v < 4 * VECTORS; v++)
                    best[v] = SPREAD(-INFINITY);
                for (int64_t position = 0; position < positions; position += CHUNK) {
                    int64_t n = least(CHUNK, positions - position);
                    NAMED(tiles)(n, panels, inner / PAIR, x + position * dim, dim, PAIR, (Panels){right, NULL},
                                 inner * PANEL, sums,
                                 COLUMNS, bias);
                    for (int64_t v = 0; v < panels * VECTORS; v++)
                        if (args->winners == NULL)
                            NAMED(update_maxima)(n, position, sums + v * WIDTH, best + v, winner + v, 0);
                        else
                            NAMED(update_maxima)(n, position, sums + v * WIDTH, best + v, winner + v, 1);
                }
                for (int64_t panel = 0; panel < panels; panel++) {
                    int64_t count = least(PANEL, filters - column - panel * PANEL);
                    NAMED(store_maxima)(args, count, best + panel * VECTORS, winner + panel * VECTORS, maxima, winners);
                    maxima += count, winners += count;
                }
                right += panels * PANEL * inner, bias += panels * PANEL;
            }
        }
    }
}

void NAMED(convolution)(const Convolution *args) {
    spacy_elmo_share_rows(args->threads, args->words, args->features, NAMED(maxima_of_words), args);
}

#if PAIR == 1
/* Add the gradient of each feature to the gradients of its weights, and of the characters in the window with the maximum. */
TARGET static void NAMED(gradients_of_word)(const ConvolutionGradient *args, int64_t word, const float *x, float *dx,
                                     float *dweights) {
    const float *weights = args->weights, *dmaxima = args->dmaxima + word * args->features;
    const int32_t *winners = args->winners + word * args->features;
    for (int64_t group = 0; group < args->groups; group++) {
        const int64_t size = args->widths[group] * args->dim, filters = args->filters_per_group[group];
        for (int64_t n = 0; n < filters; n++, weights += size, dweights += size, dmaxima++, winners++) {
            /* relu has set this feature to 0. */
            if (*dmaxima == 0.0f) continue;
            const Lanes gradient = SPREAD(*dmaxima);
            const float *window = x + *winners * args->dim;
            float *dwindow = dx + *winners * args->dim;
            for (int64_t k = 0; k < size; k += WIDTH) {
                STORE(dweights + k, FMA(gradient, LOAD(window + k), LOAD(dweights + k)));
                STORE(dwindow + k, FMA(gradient, LOAD(weights + k), LOAD(dwindow + k)));
            }
        }
    }
}

TARGET static void NAMED(gradients_of_parts)(const void *arguments, int64_t first, int64_t last) {
    const ConvolutionGradient *args = arguments;
    for (int64_t part = first; part < last; part++) {
        const int64_t dim = args->dim, size = args->columns * dim;
        float *x = args->scratch + part * 2 * size, *dx = x + size;
        float *dcharacters = args->dcharacters + part * args->number_of_characters;
        for (int64_t word = args->words * part / args->parts; word < args->words * (part + 1) / args->parts; word++) {
            const int32_t *ids = args->ids + word * args->columns;
            for (int64_t k = 0; k < args->lengths[word]; k++)
                memcpy(x + k * dim, args->characters + ids[k] * dim, dim * sizeof *x);
            memset(dx, 0, args->lengths[word] * dim * sizeof *dx);
            NAMED(gradients_of_word)(args, word, x, dx, args->dweights + part * args->number_of_weights);
            for (int64_t k = 0; k < args->lengths[word] * dim; k += WIDTH) {
                float *sum = dcharacters + ids[k / dim] * dim + k % dim;
                STORE(sum, LOAD(sum) + LOAD(dx + k));
            }
        }
    }
}

void NAMED(convolution_gradient)(const ConvolutionGradient *args) {
    spacy_elmo_share_rows(args->parts, args->parts, args->words * args->features, NAMED(gradients_of_parts), args);
}
#endif
