/* The convolutions of the character CNN. Windows are not copied, because each window is a part of the memory of a word's
   characters. Only the maximum of each filter over the positions is stored. See bilm/character_cnn.py.
   convolution_template.h contains the code.

   A group contains all filters of one width. `dim` is a multiple of 16. Every length is at least the width of the widest
   filter. */

#include <stdint.h>

#include "layers.h"

/* Number of positions that are processed together. Their sums (12 KB) and the rows of a panel fit into a first-level cache of
   32 to 48 KB. */
enum { CHUNK = 48 };

typedef struct {
    int64_t parts, words, columns, dim, groups, features;
    const int64_t *widths, *filters_per_group; /* (groups,) */
    const int64_t *lengths;                    /* (words,) */
    const int32_t *ids;                        /* (words, columns) */
    const float *characters;                   /* (any, dim) */
    const float *weights;                      /* for each filter, (width, dim) */
    const float *dmaxima;                      /* (words, features) */
    const int32_t *winners;                    /* (words, features) */
    float *scratch;                            /* (parts, 2, columns, dim) */
    int64_t number_of_characters, number_of_weights; /* sizes of `characters` and `weights` */
    float *dcharacters, *dweights;                   /* (parts, size), to which the gradients are added */
} ConvolutionGradient;

#define TEMPLATE "convolution_template.h"
#include "for_each_processor.h"
