/* The forward pass over many time steps of the layers of an LSTM, and the backward pass of one direction of a layer. See
   fused_lstm.py. fused_lstm_template.h contains the code.

   Matrices are packed into panels of 16 columns (native.py). Four neighboring panels contain the four gates of the same 16
   cells, so the gates are computed while the sums of the product are in the cache. Sequences do not depend on each other, so
   each thread processes all layers and steps of its sequences without waiting.

   Packed rows are ordered by time step, and within a step by rank. The gates of a row are in the order i, j (the candidate), f,
   o. M is the number of packed rows, and B the number of sequences. */

#include <stdint.h>

#include "panels.h"

/* Numbers of rows and of inner numbers that are processed together. CHUNK rows of the left matrix and of the sums fit into a
   second-level cache. INNER rows of the panels fill half of a first-level cache.

   A step with at most FEW rows waits for the memory of its weights. So the products x W_x are computed before, for several such
   steps with at most WINDOW rows together, and the step itself reads only W_h. The order of the sums is the same. */
enum { CHUNK = 96, INNER = 256, FEW = 6, WINDOW = 64 };

typedef struct {
    Panels gates;      /* (x_width + width, 4 dim) [W_x ; W_h] */
    Panels projection; /* (dim, width), or NULL */
    const float *bias; /* (dim / 16, 4, 16) */
} LayerWeights;

typedef struct {
    int64_t parts; /* each thread processes one part of the sequences of all directions */
    int64_t layers, directions, steps;
    const int64_t *rows; /* (steps,) number of sequences at each step, which never increases */
    int64_t sequences;
    int64_t dim, width, x_width; /* sizes of c, h, and x, rounded up to multiples of 16 */
    int64_t columns;             /* size of h, and of x from the second layer on */
    int64_t x_columns;           /* size of x in the first layer */
    const LayerWeights *weights; /* (layers, directions) */
    double cell_clip, out_clip;
    int64_t residual;     /* 1: from the second layer on, the output of a layer is h + x, not h */
    const float *vectors; /* (any, x_columns) */
    const int64_t *types; /* (directions, M) the row of `vectors` that is the input of each packed row; or NULL */
    float *values;        /* (directions, M, x_columns) the input, if `types` is NULL, else space for it */
    float *outputs;       /* (layers, directions, M, columns) output: the output of each layer */
    float *h;             /* (layers, directions, B, width) input: before the first step; output: after the last step */
    float *c;             /* (layers, directions, B, dim), as h */
    int64_t hidden_step;  /* distance of the rows of `hiddens` */
    float *scratch;       /* numbers: parts WINDOW (4 dim + x_width) + directions B (x_width + width + hidden_step) */
    /* For a backward pass, of one direction of one layer; otherwise NULL: */
    void *xh;      /* (M, x_width + width) [x ; h] */
    void *hiddens; /* (M, dim) sigmoid(o) tanh(c) */
    void *gates;   /* (M, 4 dim) gates after their activations */
    float *cells;  /* (M, dim) c after each step */
} FusedForward;

typedef struct {
    int64_t parts, steps;
    const int64_t *rows;    /* (steps,), as in the forward pass */
    int64_t dim, width, x_width; /* as in the forward pass */
    const void *weights;    /* W_x transposed, (4 dim, x_width), then W_h transposed, (4 dim, width), as panels */
    const void *projection; /* (width, dim) W_p transposed, as panels; or NULL */
    double cell_clip, out_clip;
    const void *gates;        /* (M, 4 dim) of the forward pass */
    const float *cells;       /* (M, dim) of the forward pass */
    const float *first_cells; /* (B, dim) c before the first step */
    const float *outputs;     /* (M, width) h of the forward pass */
    const float *dgiven;      /* (M, width) gradient of the outputs, without the gradient through the next step */
    void *dgates;             /* (M, 4 dim) gates before their activations; the distance of rows is `dgate_step` numbers */
    int64_t dgate_step;
    void *doutputs;           /* (M, width) */
    float *dx;                /* (M, x_width), or NULL */
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

/* Return the first sequence of one direction that belongs to a part. The parts divide the sequences of all directions. */
static int64_t border_in_direction(const FusedForward *args, int64_t direction, int64_t part) {
    const int64_t done = part * args->directions - direction * args->parts;
    return border(args->steps, args->rows, done < 0 ? 0 : least(done, args->parts), args->parts);
}

#define TEMPLATE "fused_lstm_template.h"
#include "for_each_processor.h"
