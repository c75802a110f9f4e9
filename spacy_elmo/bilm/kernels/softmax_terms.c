/* The exponentials of rows of logits, where the logits were, and their sums; see softmax_terms.py. */

#include <float.h>

#include "numbers.h"

#define SOFTMAX_TERMS(NAME, LOW, LOAD, STORE)                                                                                 \
    VARIANTS void NAME(int64_t rows, int64_t dim, LOW *logits, const float *bias, float *room, float *largest,         \
                       float *sums) {                                                                                  \
        for (int64_t row = 0; row < rows; row++) {                                                                     \
            LOW *restrict x = logits + row * dim;                                                                      \
            float *restrict raw = room;                                                                                \
            /* Where all logits are -infinity, too. */                                                                 \
            float most = -FLT_MAX, sum = 0.0f;                                                                         \
            LANES(max, most)                                                                                           \
            for (int64_t k = 0; k < dim; k++) {                                                                        \
                raw[k] = LOAD(x[k]) + bias[k];                                                                         \
                most = raw[k] > most ? raw[k] : most;                                                                  \
            }                                                                                                          \
            LANES(+, sum)                                                                                              \
            for (int64_t k = 0; k < dim; k++) {                                                                        \
                float power = exponential(raw[k] - most);                                                              \
                sum += power;                                                                                          \
                x[k] = STORE(power);                                                                                   \
            }                                                                                                          \
            largest[row] = most, sums[row] = sum;                                                                      \
        }                                                                                                              \
    }

FOR_BOTH(SOFTMAX_TERMS, softmax_terms)
