/* Maxima over positions and their gradient, in one type of numbers: pooling.c. */

VARIANTS void NAMED(maximum)(int64_t words, int64_t positions, int64_t dim, const NUMBER *features, NUMBER *maxima,
                             int32_t *winners) {
    for (int64_t word = 0; word < words; word++) {
        const NUMBER *restrict first = features + word * positions * dim;
        NUMBER *restrict best = maxima + word * dim;
        int32_t *restrict winner = winners + word * dim;
        for (int64_t k = 0; k < dim; k++)
            best[k] = first[k], winner[k] = 0;
        for (int32_t position = 1; position < positions; position++) {
            const NUMBER *restrict row = first + position * dim;
            INDEPENDENT
            for (int64_t k = 0; k < dim; k++) {
                float value = READ(row[k]);
                int better = value > READ(best[k]) || value != value;
                best[k] = better ? row[k] : best[k];
                winner[k] = better ? position : winner[k];
            }
        }
    }
}

/* The gradient of the features: that of its maximum goes to the position that has it. */
VARIANTS void NAMED(spread)(int64_t words, int64_t positions, int64_t dim, const NUMBER *dmaxima, const int32_t *winners,
                            NUMBER *dfeatures) {
    for (int64_t word = 0; word < words; word++) {
        const NUMBER *restrict gradient = dmaxima + word * dim;
        const int32_t *restrict winner = winners + word * dim;
        for (int32_t position = 0; position < positions; position++) {
            NUMBER *restrict row = dfeatures + (word * positions + position) * dim;
            INDEPENDENT
            for (int64_t k = 0; k < dim; k++)
                row[k] = winner[k] == position ? gradient[k] : 0;
        }
    }
}
