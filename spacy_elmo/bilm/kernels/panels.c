/* Matrices as panels, and the products that read them; see panels.py. The code is in panels_template.h, which is
   included once per kind of processor. */

#include <stdint.h>

typedef struct {
    int64_t panels;
    int64_t inner, known_inner; /* rows of a panel, a multiple of sixteen, and of the matrix; those beyond are zero */
    int64_t columns;            /* of the matrix, or of each gate */
    int64_t gates;              /* 1, or 4: a panel of each of four gates, then the next of each */
    const float *source;        /* (known_inner, columns) or (known_inner, 4, columns), with these steps: */
    int64_t inner_step, column_step, gate_step;
    void *packed; /* (panels, inner, 16), panels `panel_step` numbers apart */
    int64_t panel_step;
} Packing;

typedef struct {
    int64_t threads, rows, inner, columns;
    const float *left; /* (rows, inner) */
    int64_t row_step;
    const float *panels; /* of the right matrix, (inner, columns), or NULL and the matrix itself, with these steps: */
    const float *right;
    int64_t inner_step, column_step;
    const float *start; /* (columns,), or NULL for zeros */
    float *sums;        /* (rows, columns) */
    int64_t sum_step;
} Product;

/* Rows of a product at a time, whose left side a second-level cache holds, and inner numbers, of which panels take half of a
   first-level cache. */
enum { CHUNK = 96, INNER = 256 };

#define TEMPLATE "panels_template.h"
#include "for_each_processor.h"
