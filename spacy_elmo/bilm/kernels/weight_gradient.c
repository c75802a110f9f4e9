/* The gradient of a weight matrix: the transpose of a matrix, times another matrix, summed over many rows. For bfloat16 the
   sums are float32, too, which no library offers. See native.py. weight_gradient_template.h contains the code. */

#include <stdint.h>

/* ROWS rows of BLOCK columns of the right matrix are packed together: 512 KB in bfloat16, for a second-level cache of 1 MB.
   INNER rows of four panels have 32 KB in bfloat16, for a first-level cache of 48 KB. */
enum { ROWS = 1024, BLOCK = 256, INNER = 256 };

typedef struct {
    int64_t threads, rows;
    const void *left;
    int64_t left_stride, left_columns;
    const void *right;
    int64_t right_stride, right_columns;
    float *sums;
    int64_t sum_stride, add;
    void *left_scratch, *right_scratch;
} WeightGradient;

typedef struct {
    const WeightGradient *args;
    int64_t row, rows;
} Block;

/* Return the number of rows of a packed panel. The last block can have fewer rows. */
static int64_t panel_rows(const WeightGradient *args) { return args->rows < ROWS ? args->rows + args->rows % 2 : ROWS; }

#define TEMPLATE "weight_gradient_template.h"
#include "for_each_processor.h"
