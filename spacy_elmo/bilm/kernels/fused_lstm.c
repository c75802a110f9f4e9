/* Many steps of one direction of an LSTM layer in one call, forward and backward; see fused_lstm.py.

   A matrix is packed into panels of 16 columns; four panels with the four gates of the same sixteen cells follow each other.
   A panel is stored row after row, in bfloat16 with two rows interleaved, so a product reads contiguous memory. The gates are
   applied to the sums of four panels while these are in the cache. Sequences do not depend on each other, so every thread
   processes all steps of its sequences without waiting. The code is in fused_lstm_template.h, which is included once per kind
   of processor.

   Packed rows are stored step after step, and in each step in the order of the sequences' ranks. The gates of a row are in
   the order i, j (the candidate), f, o. M is the number of rows, B the number of sequences. */

#include <stdint.h>

/* Rows of sums at a time, which fit into a second-level cache with their left rows, and inner numbers, of which a panel
   takes half of a first-level cache. */
enum { CHUNK = 96, INNER = 256 };

typedef struct {
    int64_t parts, steps;
    const int64_t *rows;    /* (steps,) sequences that have each step, never more than had the one before */
    int64_t dim, width;     /* multiples of 16: of c, and of x and h */
    const void *weights;    /* (2 width, 4 dim) [W_x ; W_h] in panels */
    const void *projection; /* (dim, width) in panels, or NULL */
    const float *bias;      /* (4 dim,) */
    double cell_clip, out_clip;
    void *xh;       /* (M, 2 width) [x ; h]: x is given, and h for the first step */
    float *inputs;  /* (dim / 16, M, 64) scratch for b + x W_x, which is then one product for all steps; or NULL */
    float *state;   /* (B, dim) c: before the first step, then after the last */
    void *hiddens;  /* (M, dim), rows `hidden_step` numbers apart */
    int64_t hidden_step;
    void *gates;    /* (M, 4 dim) after their activations, or NULL */
    float *cells;   /* (M, dim) c after each step; NULL where `gates` is */
    float *outputs; /* (M, width) h */
} FusedForward;

typedef struct {
    int64_t parts, steps;
    const int64_t *rows;    /* (steps,) as forward */
    int64_t dim, width;     /* as forward */
    const void *weights;    /* W_x transposed, then W_h transposed: each (4 dim, width) in panels */
    const void *projection; /* (width, dim) in panels, or NULL */
    double cell_clip, out_clip;
    const void *gates;        /* (M, 4 dim) of the forward pass */
    const float *cells;       /* (M, dim) of the forward pass */
    const float *first_cells; /* (B, dim) c before the first step */
    const float *outputs;     /* (M, width) of the forward pass */
    const float *dgiven;      /* (M, width) the gradient of the outputs, without that through the next step */
    void *dgates;             /* (M, 4 dim) before the activations, rows `dgate_step` numbers apart */
    int64_t dgate_step;
    void *doutputs;           /* (M, width) */
    float *dx;                /* (M, width), or NULL */
    float *dhidden, *dstate;  /* (B, width) and (B, dim): of h and c after the last step, then before the first */
    float *dbias;             /* (parts, 4 dim), to which the gradients are added */
} FusedBackward;

static int64_t sum(int64_t steps, const int64_t *rows) {
    int64_t total = 0;
    for (int64_t step = 0; step < steps; step++)
        total += rows[step];
    return total;
}

/* The first sequence of a part; all parts have about as many rows. */
static int64_t border(int64_t steps, const int64_t *rows, int64_t part, int64_t parts) {
    int64_t total = sum(steps, rows), done = 0, rank = 0, length = steps;
    for (; steps > 0 && rank < rows[0] && done * parts < total * part; rank++, done += length)
        while (rows[length - 1] <= rank)
            length--;
    return rank;
}

#define TEMPLATE "fused_lstm_template.h"
#include "for_each_processor.h"
