/* Rows of float32 as bytes with a scale each, and back; see int8.py. */

#include "names.h"
#include "numbers.h"
#include "threads.h"

/* Numbers of these that take as long as the gates of one cell. */
enum { CHEAPER = 2 };

typedef struct {
    int64_t dim;
    const float *numbers;
    int8_t *bytes;
    float *scales;
} Quantized;

VARIANTS static void quantize_rows(const void *arguments, int64_t first, int64_t last) {
    const Quantized of = *(const Quantized *)arguments;
    for (int64_t row = first; row < last; row++) {
        const float *restrict x = of.numbers + row * of.dim;
        int8_t *restrict out = of.bytes + row * of.dim;
        float most = 0.0f, nothing = 0.0f;
        BY_LANES(max, most)
        for (int64_t k = 0; k < of.dim; k++) {
            float size = fabsf(x[k]);
            most = size > most ? size : most;
        }
        /* Bytes cannot hold what is not a number, so the scale does. */
        BY_LANES(+, nothing)
        for (int64_t k = 0; k < of.dim; k++)
            nothing += x[k] * 0.0f;
        of.scales[row] = most / 127.0f + nothing;
        float steps = most > 0.0f ? 127.0f / most : 0.0f;
        INDEPENDENT
        for (int64_t k = 0; k < of.dim; k++)
            /* Adding 1.5 * 2^23 rounds to the nearest whole number, of which the lowest bits of the sum are the lowest.
               A conversion is not defined for what is not a number. */
            out[k] = (int8_t)(uint8_t)to_bits(x[k] * steps + 12582912.0f);
    }
}

void OF_FLOAT32(quantize)(int64_t threads, int64_t rows, int64_t dim, const float *numbers, int8_t *bytes,
                          float *scales) {
    const Quantized of = {dim, numbers, bytes, scales};
    spacy_elmo_share_rows(threads, rows, dim / CHEAPER, quantize_rows, &of);
}

typedef struct {
    int64_t dim;
    int32_t *sums;
    const float *scales, *columns;
} Rescaled;

VARIANTS static void dequantize_rows(const void *arguments, int64_t first, int64_t last) {
    const Rescaled of = *(const Rescaled *)arguments;
    const float *restrict columns = of.columns;
    for (int64_t row = first; row < last; row++) {
        int32_t *restrict x = of.sums + row * of.dim;
        float scale = of.scales[row];
        INDEPENDENT
        for (int64_t k = 0; k < of.dim; k++)
            x[k] = (int32_t)to_bits((float)x[k] * scale * columns[k]);
    }
}

/* Each number takes the place of its sum. */
void OF_FLOAT32(dequantize)(int64_t threads, int64_t rows, int64_t dim, int32_t *sums, const float *scales,
                            const float *columns) {
    const Rescaled of = {dim, sums, scales, columns};
    spacy_elmo_share_rows(threads, rows, dim / CHEAPER, dequantize_rows, &of);
}
