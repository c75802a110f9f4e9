/* The forward and the backward pass over many time steps of one direction of an LSTM layer. See fused_lstm.py.
   fused_lstm_template.h contains the code.

   Matrices are packed into panels of 16 columns (native.py). Four neighboring panels contain the four gates of the same 16
   cells, so the gates are computed while the sums of the product are in the cache. Sequences do not depend on each other, so
   each thread processes all steps of its sequences without waiting.

   Packed rows are ordered by time step, and within a step by rank. The gates of a row are in the order i, j (the candidate), f,
   o. M is the number of packed rows, and B the number of sequences. */

#include <stdint.h>

/* Numbers of rows and of inner numbers that are processed together. CHUNK rows of the left matrix and of the sums fit into a
   second-level cache. INNER rows of the panels fill half of a first-level cache. */
enum { CHUNK = 96, INNER = 256 };

typedef struct {
    int64_t parts, steps;
    const int64_t *rows;    /* (steps,) number of sequences at each step, which never increases */
    int64_t dim, width;     /* sizes of c, and of x and h; multiples of 16 */
    const void *weights;    /* (2 width, 4 dim) [W_x ; W_h] as panels */
    const void *projection; /* (dim, width) as panels, or NULL */
    const float *bias;      /* (4 dim,) */
    double cell_clip, out_clip;
    void *xh;       /* (M, 2 width) [x ; h]; input: x of all steps, and h of the first step */
    float *inputs;  /* (dim / 16, M, 64) scratch, if b + x W_x is computed first for all steps; or NULL */
    float *state;   /* (B, dim) input: c before the first step; output: c after the last step */
    void *hiddens;  /* (M, dim) sigmoid(o) tanh(c); the distance of rows is `hidden_step` numbers */
    int64_t hidden_step;
    void *gates;    /* (M, 4 dim) gates after their activations, or NULL */
    float *cells;   /* (M, dim) c after each step; NULL if `gates` is NULL */
    float *outputs; /* (M, width) h */
} FusedForward;

typedef struct {
    int64_t parts, steps;
    const int64_t *rows;    /* (steps,) as in the forward pass */
    int64_t dim, width;     /* as in the forward pass */
    const void *weights;    /* W_x transposed, then W_h transposed; each (4 dim, width) as panels */
    const void *projection; /* (width, dim) W_p transposed, as panels; or NULL */
    double cell_clip, out_clip;
    const void *gates;        /* (M, 4 dim) of the forward pass */
    const float *cells;       /* (M, dim) of the forward pass */
    const float *first_cells; /* (B, dim) c before the first step */
    const float *outputs;     /* (M, width) of the forward pass */
    const float *dgiven;      /* (M, width) gradient of the outputs, without the gradient through the next step */
    void *dgates;             /* (M, 4 dim) gates before their activations; the distance of rows is `dgate_step` numbers */
    int64_t dgate_step;
    void *doutputs;           /* (M, width) */
    float *dx;                /* (M, width), or NULL */
    float *dhidden, *dstate;  /* (B, width) and (B, dim) input: after the last step; output: before the first step */
    float *dbias;             /* (parts, 4 dim), to which the gradients are added */
} FusedBackward;

static int64_t sum(int64_t steps, const int64_t *rows) {
    int64_t total = 0;
    for (int64_t step = 0; step < steps; step++)
        total += rows[step];
    return total;
}

/* Return the first sequence of a part. All parts have about the same number of rows. */
static int64_t border(int64_t steps, const int64_t *rows, int64_t part, int64_t parts) {
    int64_t total = sum(steps, rows), done = 0, rank = 0, length = steps;
    for (; steps > 0 && rank < rows[0] && done * parts < total * part; rank++, done += length)
        while (rows[length - 1] <= rank)
            length--;
    return rank;
}

#define TEMPLATE "fused_lstm_template.h"
#include "for_each_processor.h"
