/* The gradient of a weight matrix from many rows: (left columns, right columns) sums of products over the rows, in float32,
   which no library gives for bfloat16; see weight_gradient.py. */

#include <stddef.h>

#include "threads.h"

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)

/* Rows that are packed at a time and columns of the right matrix, which the second cache holds, and rows that the first
   does. */
enum { ROWS = 1024, COLUMNS = 256, INNER = 256 };

typedef struct {
    int64_t threads, rows;
    const void *left;
    int64_t left_stride, left_columns;
    const void *right;
    int64_t right_stride, right_columns;
    float *sums;
    int64_t sum_stride, add;
    void *left_room, *right_room;
} WeightGradient;

typedef struct {
    const WeightGradient *of;
    int64_t row, rows;
} Block;

#define TEMPLATE "weight_gradient.h"
#include "avx512_types.h"

#endif
