/* The functions of word_vectors.c for one kind of processor. */

#if PAIR == 1
void NAMED(convolution)(const Convolution *args);
void NAMED(product)(const Product *args);
void NAMED(highway)(const Highway *args);

static void NAMED(dense)(const Convolution *words, const Dense *layer, int64_t columns, float *out) {
    const Product product = {.threads = words->threads, .rows = words->words, .inner = words->features, .columns = columns,
                             .left = words->maxima, .row_step = words->features, .panels = layer->weights,
                             .start = layer->bias, .sums = out, .sum_step = columns};
    NAMED(product)(&product);
}

void NAMED(word_vectors)(const WordVectors *args) {
    const Convolution *words = &args->convolution;
    const Highway highway = {words->threads, words->words, words->features, words->maxima, args->gates, words->maxima};
    NAMED(convolution)(words);
    for (int64_t k = 0; k < args->highways; k++) {
        NAMED(dense)(words, args->layers + k, 2 * words->features, args->gates);
        NAMED(highway)(&highway);
    }
    if (args->vectors != NULL) NAMED(dense)(words, args->layers + args->highways, args->columns, args->vectors);
}
#endif
