/* The element-wise half of an LSTM step in one pass over memory, for float32 and bfloat16 on a CPU.

   The arithmetic is that of cell.py. Plain C that the compiler turns into vector instructions: no libraries, no headers
   of Python or torch. */

#include <stddef.h>

#include "threads.h"

typedef struct {
    int64_t dim;
    const void *inputs, *recurrent;
    const float *bias;
    float clip;
    float *state;
    void *gates;
    float *cells;
    void *hidden;
} Step;

typedef struct {
    float i, j, f, o, c;
} Cell;

#define TEMPLATE "cell.h"
#include "plain_types.h"
