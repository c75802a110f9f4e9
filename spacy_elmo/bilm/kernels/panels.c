/* Packing of matrices into panels, and matrix products. See native.py. panels_template.h contains the code. */

#include <stdint.h>

#include "layers.h"

typedef struct {
    int64_t panels;
    int64_t inner, known_inner; /* rows of a panel, a multiple of 16; and of the matrix. The other rows are zeros */
    int64_t columns;            /* of the matrix, or of each gate */
    int64_t gates;              /* 1; or 4: the first panel of each gate, then the second of each gate, ... */
    const float *source;        /* (known_inner, columns) or (known_inner, 4, columns), with these steps: */
    int64_t inner_step, column_step, gate_step;
    void *packed; /* (panels, inner, 16); the distance of panels is `panel_step` numbers */
    int64_t panel_step;
} Packing;

/* Numbers of rows and of inner numbers that are processed together. CHUNK rows of the left matrix fit into a second-level
   cache. INNER rows of the panels fill half of a first-level cache. */
enum { CHUNK = 96, INNER = 256 };

#define TEMPLATE "panels_template.h"
#include "for_each_processor.h"
