/* The arguments of functions that `word_vectors` calls, too. */

#include <stdint.h>

#include "panels.h"

enum { NONE, RELU, TANH };

/* See convolution.c. */
typedef struct {
    int64_t threads, words, columns, dim, groups, features;
    const int64_t *widths, *filters_per_group; /* (groups,) */
    const int64_t *lengths;                    /* (words,) */
    const int32_t *ids;                        /* (words, columns) rows of `characters` */
    const void *characters;                    /* (any, dim) */
    const void *weights;                       /* for each group, panels with width * dim rows */
    const float *biases;                       /* for each group, the biases of its filters, padded to whole panels */
    void *scratch;                             /* (words, columns, dim) */
    float *maxima;                             /* (words, features) */
    int32_t *winners;                          /* (words, features) position of each maximum, or NULL */
    int64_t activation;                        /* applied to the maxima */
} Convolution;

/* See panels_template.h. */
typedef struct {
    int64_t threads, rows, inner, columns;
    const float *left; /* (rows, inner) */
    int64_t row_step;
    Panels panels; /* the right matrix, (inner, columns), as panels; or NULL and the matrix itself, with these steps: */
    const float *right;
    int64_t inner_step, column_step;
    const float *start; /* (columns,), or NULL for zeros */
    float *sums;        /* (rows, columns) */
    int64_t sum_step;
} Product;

/* See rows_template.h. */
typedef struct {
    int64_t threads, rows, dim;
    const float *x; /* (rows, dim) */
    float *gates;   /* (rows, 2 dim) input: carry gate and transformation before their activations; output: after them */
    float *out;     /* (rows, dim) */
} Highway;
