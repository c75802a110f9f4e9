/* Many steps of one direction of an LSTM layer in one call, forward and backward; see fused_lstm.py.

   A matrix is packed into panels of 64 columns (of the gates: 4 x 16, those of sixteen cells), which lie row after row, and
   in bfloat16 the rows two and two: what a product reads lies end to end. The gates are applied to the sums of a panel
   before they have left the cache. Sequences do not depend on each other, so every thread takes its own through all
   steps and waits for nobody. */

#include <stddef.h>

#include "threads.h"

/* Rows of sums, and inner numbers of a panel, that are worked on at a time because the nearer caches hold them. */
enum { CHUNK = 96, INNER = 512 };

typedef struct {
    int64_t parts, steps;
    const int64_t *rows;
    int64_t dim, width;
    const void *weights, *projection;
    const float *bias;
    float cell_clip, out_clip;
    void *xh;
    float *state;
    void *hiddens, *gates;
    float *cells, *outputs;
} FusedForward;

typedef struct {
    int64_t parts, steps;
    const int64_t *rows;
    int64_t dim, width;
    const void *weights, *projection;
    float cell_clip, out_clip;
    const void *gates;
    const float *cells, *first_cells, *outputs, *dgiven;
    void *dgates, *doutputs;
    float *dx, *dhidden, *dstate, *dbias;
} FusedBackward;

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)

/* The first sequence of a part; all parts have about as many rows. */
static int64_t border(int64_t steps, const int64_t *rows, int64_t part, int64_t parts) {
    int64_t total = 0, done = 0, rank = 0, length = steps;
    for (int64_t step = 0; step < steps; step++)
        total += rows[step];
    for (; steps > 0 && rank < rows[0] && done * parts < total * part; rank++, done += length)
        while (rows[length - 1] <= rank)
            length--;
    return rank;
}

#define TEMPLATE "fused_lstm.h"
#include "avx512_types.h"

#endif
