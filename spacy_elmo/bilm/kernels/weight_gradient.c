/* The gradient of a weight matrix: (left columns, right columns) sums of products over many rows. For bfloat16 the sums are
   float32 too, which no library offers; see weight_gradient.py. The code is in weight_gradient_template.h, which is included
   once per kind of processor. */

#include <stdint.h>

/* Rows that are packed at a time and columns of the right matrix: 512 KB in bfloat16, for a second-level cache of 1 MB.
   Inner rows of a panel: 32 KB in bfloat16, for a first-level cache of 48 KB. */
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

/* Rows of a packed panel, of which a block may fill less. */
static int64_t panel_rows(const WeightGradient *args) { return args->rows < ROWS ? args->rows + args->rows % 2 : ROWS; }

#define TEMPLATE "weight_gradient_template.h"
#include "for_each_processor.h"
