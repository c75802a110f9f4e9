/* Rows of float32 as bytes with a scale each, and back; see int8.py. */

#include "numbers.h"

VARIANTS void quantized_float32_1(int64_t rows, int64_t dim, const float *numbers, int8_t *bytes, float *scales) {
    for (int64_t row = 0; row < rows; row++) {
        const float *restrict x = numbers + row * dim;
        int8_t *restrict out = bytes + row * dim;
        float most = 0.0f, nothing = 0.0f;
        LANES(max, most)
        for (int64_t k = 0; k < dim; k++) {
            float size = fabsf(x[k]);
            most = size > most ? size : most;
        }
        /* Bytes cannot hold what is not a number, so the scale does. */
        LANES(+, nothing)
        for (int64_t k = 0; k < dim; k++)
            nothing += x[k] * 0.0f;
        scales[row] = most / 127.0f + nothing;
        float steps = most > 0.0f ? 127.0f / most : 0.0f;
        INDEPENDENT
        for (int64_t k = 0; k < dim; k++)
            /* Adding and taking away 1.5 * 2^23 rounds to the nearest whole number. */
            out[k] = (int8_t)(int32_t)((x[k] * steps + 12582912.0f) - 12582912.0f);
    }
}

/* Each number takes the place of its sum. */
VARIANTS void rescaled_float32_1(int64_t rows, int64_t dim, int32_t *sums, const float *scales, const float *columns) {
    for (int64_t row = 0; row < rows; row++) {
        int32_t *restrict x = sums + row * dim;
        float scale = scales[row];
        INDEPENDENT
        for (int64_t k = 0; k < dim; k++)
            x[k] = (int32_t)to_bits((float)x[k] * scale * columns[k]);
    }
}
