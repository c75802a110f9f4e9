/* The element-wise half of an LSTM step in one pass over memory, for float32 and bfloat16 on a CPU.

   The code is in cell_template.h, which is included once per number type. The arithmetic is that of cell.py. Plain C that
   the compiler turns into vector instructions: no libraries, no headers of Python or torch. */

#include <stddef.h>

#include "threads.h"

/* One step of n sequences, in each of which the gates lie in the order i, j (the candidate), f, o. */
typedef struct {
    int64_t dim;
    const void *inputs, *recurrent; /* (n, 4 dim) */
    const float *bias;              /* (4 dim,) */
    float clip;
    float *state; /* (n, dim) c: of the previous step, then of this one */
    void *gates;  /* (n, 4 dim) after their activations, or NULL */
    float *cells; /* (n, dim) a copy of the new c; NULL where `gates` is */
    void *hidden; /* (n, dim) */
} Step;

/* The activated gates of one cell, and its new c. */
typedef struct {
    float i, j, f, o, c;
} Cell;

#define TEMPLATE "cell_template.h"
#include "for_each_type.h"
