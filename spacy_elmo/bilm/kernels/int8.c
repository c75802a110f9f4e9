/* Rows of float32 as bytes with a scale each, and back; see int8.py. */

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "symbol_names.h"
#include "threads.h"

INLINE uint32_t to_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Numbers that take as long here as the gates of one LSTM cell, the unit of spacy_elmo_share_rows. */
enum { NUMBERS_PER_CELL = 2 };

typedef struct {
    int64_t dim;
    const float *numbers; /* (rows, dim) */
    int8_t *bytes;        /* (rows, dim) */
    float *scales;        /* (rows,) */
} Quantized;

VARIANTS static void quantize_rows(const void *arguments, int64_t first, int64_t last) {
    const Quantized args = *(const Quantized *)arguments;
    for (int64_t row = first; row < last; row++) {
        const float *restrict x = args.numbers + row * args.dim;
        int8_t *restrict out = args.bytes + row * args.dim;
        float most = 0.0f, not_finite = 0.0f;
        BY_LANES(max, most)
        for (int64_t k = 0; k < args.dim; k++) {
            float size = fabsf(x[k]);
            most = size > most ? size : most;
        }
        /* A byte cannot hold NaN or infinity, so the row's scale becomes NaN: 0 times either is NaN. */
        BY_LANES(+, not_finite)
        for (int64_t k = 0; k < args.dim; k++)
            not_finite += x[k] * 0.0f;
        args.scales[row] = most / 127.0f + not_finite;
        float steps = most > 0.0f ? 127.0f / most : 0.0f;
        INDEPENDENT
        for (int64_t k = 0; k < args.dim; k++)
            /* Adding 1.5 * 2^23 rounds to the nearest whole number, of which the lowest bits of the sum are the lowest.
               A conversion is not defined for what is not a number. */
            out[k] = (int8_t)(uint8_t)to_bits(x[k] * steps + 12582912.0f);
    }
}

void OF_VARIANT(quantize, float32)(int64_t threads, int64_t rows, int64_t dim, const float *numbers, int8_t *bytes,
                          float *scales) {
    const Quantized args = {dim, numbers, bytes, scales};
    spacy_elmo_share_rows(threads, rows, dim / NUMBERS_PER_CELL, quantize_rows, &args);
}

typedef struct {
    int64_t dim;
    int32_t *sums;
    const float *scales, *columns;
} Rescaled;

VARIANTS static void dequantize_rows(const void *arguments, int64_t first, int64_t last) {
    const Rescaled args = *(const Rescaled *)arguments;
    const float *restrict columns = args.columns;
    for (int64_t row = first; row < last; row++) {
        int32_t *restrict x = args.sums + row * args.dim;
        float scale = args.scales[row];
        INDEPENDENT
        for (int64_t k = 0; k < args.dim; k++)
            x[k] = (int32_t)to_bits((float)x[k] * scale * columns[k]);
    }
}

/* sums (rows, dim) become float32 numbers; scales (rows,), columns (dim,). */
void OF_VARIANT(dequantize, float32)(int64_t threads, int64_t rows, int64_t dim, int32_t *sums, const float *scales,
                            const float *columns) {
    const Rescaled args = {dim, sums, scales, columns};
    spacy_elmo_share_rows(threads, rows, dim / NUMBERS_PER_CELL, dequantize_rows, &args);
}
