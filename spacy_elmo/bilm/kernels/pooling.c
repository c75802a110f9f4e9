/* The maximum over the positions of a word, and which position has it; see pooling.py. */

#include "numbers.h"

#define MAXIMUM(NAME, LOW, LOAD, STORE)                                                                                \
    VARIANTS void NAME(int64_t words, int64_t positions, int64_t dim, const LOW *features, LOW *maxima,                \
                       int32_t *winners) {                                                                             \
        for (int64_t word = 0; word < words; word++) {                                                                 \
            const LOW *restrict first = features + word * positions * dim;                                             \
            LOW *restrict best = maxima + word * dim;                                                                  \
            int32_t *restrict winner = winners + word * dim;                                                           \
            for (int64_t k = 0; k < dim; k++) best[k] = first[k], winner[k] = 0;                                       \
            for (int32_t position = 1; position < positions; position++) {                                             \
                const LOW *restrict row = first + position * dim;                                                      \
                INDEPENDENT                                                                                            \
                for (int64_t k = 0; k < dim; k++) {                                                                    \
                    float value = LOAD(row[k]);                                                                        \
                    int better = value > LOAD(best[k]) || value != value;                                              \
                    best[k] = better ? row[k] : best[k];                                                               \
                    winner[k] = better ? position : winner[k];                                                         \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

FOR_BOTH(MAXIMUM, maximum)

#define SPREAD(NAME, LOW, LOAD, STORE)                                                                                 \
    VARIANTS void NAME(int64_t words, int64_t positions, int64_t dim, const LOW *dmaxima, const int32_t *winners,      \
                       LOW *dfeatures) {                                                                               \
        for (int64_t word = 0; word < words; word++) {                                                                 \
            const LOW *restrict gradient = dmaxima + word * dim;                                                       \
            const int32_t *restrict winner = winners + word * dim;                                                     \
            for (int32_t position = 0; position < positions; position++) {                                             \
                LOW *restrict row = dfeatures + (word * positions + position) * dim;                                   \
                INDEPENDENT                                                                                            \
                for (int64_t k = 0; k < dim; k++) row[k] = winner[k] == position ? gradient[k] : 0;                    \
            }                                                                                                          \
        }                                                                                                              \
    }

FOR_BOTH(SPREAD, spread)
