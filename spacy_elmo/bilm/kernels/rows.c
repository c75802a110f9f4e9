/* Functions that process numbers or rows one by one: highway layers, the terms of a softmax, the products of rows, and the
   quantization of rows. See highway.py, softmax_terms.py and int8.py. The code is in rows_template.h, which is included once
   per kind of processor. */

#include <float.h>
#include <stdint.h>

typedef struct {
    int64_t threads, rows, dim;
    const float *x; /* (rows, dim) */
    float *gates;   /* (rows, 2 dim) the sums of the carry gate and of the transformation; then both after their activations */
    float *out;     /* (rows, dim) */
} Highway;

typedef struct {
    int64_t threads, rows, dim;
    void *logits;      /* (rows, dim) without the bias; then the terms */
    const float *bias; /* (dim,) */
    float *sums;       /* (rows,) of the terms */
    float *log_sums;   /* (rows,) of the exponentials */
} Softmax;

typedef struct {
    int64_t threads, rows, dim;
    const float *left, *right; /* (rows, dim) */
    float *sums;               /* (rows,) */
} RowProducts;

/* The natural logarithm of a normal number, in arithmetic that every processor has: x = 2^n m, m between 0.7 and 1.5, and
   log m = 2 artanh(s) with s = (m - 1) / (m + 1). */
static double logarithm(float x) {
    union {
        float number;
        uint32_t bits;
    } m = {x};
    const int32_t n = (int32_t)(m.bits - 0x3f3504f3u) >> 23;
    m.bits -= (uint32_t)n << 23;
    const double s = ((double)m.number - 1.0) / ((double)m.number + 1.0), square = s * s;
    double sum = 0.0;
    for (int k = 15; k > 0; k -= 2)
        sum = sum * square + 2.0 / k;
    return n * 0.69314718055994531 + s * sum;
}

#define TEMPLATE "rows_template.h"
#include "for_each_processor.h"
