/* The token encoder for characters: convolutions, highway layers and a projection. See bilm/character_cnn.py.
   word_vectors_template.h contains the code. */

#include <stdint.h>

#include "layers.h"

typedef struct {
    Panels weights;    /* (features, columns) */
    const float *bias; /* (columns,) */
} Dense;

typedef struct {
    Convolution convolution; /* its maxima are overwritten */
    int64_t highways;
    const Dense *layers; /* [W_c, W_t] of each highway layer, then the projection */
    float *gates;        /* (words, 2 features) scratch */
    int64_t columns;     /* of the projection */
    float *vectors;      /* (words, columns); NULL: no projection, and the result is in the maxima */
} WordVectors;

#define TEMPLATE "word_vectors_template.h"
#include "for_each_processor.h"
