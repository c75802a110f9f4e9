/* Functions that process each row of a matrix separately: highway layers, the terms of a softmax, and dot products of rows. See
   bilm/character_cnn.py and bilm/head.py. rows_template.h contains the code. */

#include <float.h>
#include <stdint.h>

#include "layers.h"

typedef struct {
    int64_t threads, rows, dim;
    void *logits;      /* (rows, dim) input: logits without the bias; output: the terms */
    const float *bias; /* (dim,) */
    float *sums;       /* (rows,) sum of the terms of each row */
    float *log_sums;   /* (rows,) logarithm of the sum of e^(logit + bias) in each row */
} Softmax;

typedef struct {
    int64_t threads, rows, dim;
    const float *left, *right; /* (rows, dim) */
    float *sums;               /* (rows,) */
} RowProducts;

/* Return the natural logarithm of a normal number, with operations that have the same result on every processor:
   x = 2^n m, where m is between 0.7 and 1.5, and log m = 2 artanh(s), where s = (m - 1) / (m + 1). */
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
