/* The character CNN of many words without their windows: those of a word lie in its characters, one behind the other, and
   the features at all positions are dropped once their maximum is known. See convolution.py. The code of the forward pass is
   in convolution_template.h, which is included once per number type.

   Filters of one width are a group. `dim` is a multiple of the lanes, and every length at least the widest width. */

#include <math.h>
#include <stddef.h>

#include "threads.h"

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)

/* Positions at a time. Their sums (12 KB) and rows of a panel fit into a first-level cache of 32 to 48 KB. */
enum { CHUNK = 48 };

typedef struct {
    int64_t threads, words, columns, dim, groups, features;
    const int64_t *widths, *filters_per_group; /* (groups,) */
    const int64_t *lengths;                    /* (words,) */
    const int32_t *ids;                        /* (words, columns) rows of `characters` */
    const void *characters;                    /* (any, dim) */
    const void *weights;                       /* for each group, panels of width * dim rows */
    const float *biases;                       /* for each group, its filters padded to whole panels */
    void *scratch;                             /* (words, columns, dim) */
    float *maxima;                             /* (words, features) */
    int32_t *winners;                          /* (words, features) positions of the maxima, or NULL */
} Convolution;

#define TEMPLATE "convolution_template.h"
#include "for_each_type_avx512.h"

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

/* The gradient of one feature goes to the window that was its maximum: to its characters and to its weights. */
AVX512 static void gradients_of_word(const ConvolutionGradient *args, int64_t word, const float *x, float *dx,
                                     float *dweights) {
    const float *weights = args->weights, *dmaxima = args->dmaxima + word * args->features;
    const int32_t *winners = args->winners + word * args->features;
    for (int64_t group = 0; group < args->groups; group++) {
        const int64_t size = args->widths[group] * args->dim, filters = args->filters_per_group[group];
        for (int64_t n = 0; n < filters; n++, weights += size, dweights += size, dmaxima++, winners++) {
            /* Where relu has shut a feature. */
            if (*dmaxima == 0.0f) continue;
            const Lanes gradient = all_lanes(*dmaxima);
            const float *window = x + *winners * args->dim;
            float *dwindow = dx + *winners * args->dim;
            for (int64_t k = 0; k < size; k += LANES) {
                _mm512_storeu_ps(dweights + k, _mm512_loadu_ps(dweights + k) + gradient * _mm512_loadu_ps(window + k));
                _mm512_storeu_ps(dwindow + k, _mm512_loadu_ps(dwindow + k) + gradient * _mm512_loadu_ps(weights + k));
            }
        }
    }
}

AVX512 static void gradients_of_parts(const void *arguments, int64_t first, int64_t last) {
    const ConvolutionGradient *args = arguments;
    for (int64_t part = first; part < last; part++) {
        const int64_t dim = args->dim, size = args->columns * dim;
        float *x = args->scratch + part * 2 * size, *dx = x + size;
        float *dcharacters = args->dcharacters + part * args->number_of_characters;
        for (int64_t word = args->words * part / args->parts; word < args->words * (part + 1) / args->parts; word++) {
            const int32_t *ids = args->ids + word * args->columns;
            for (int64_t k = 0; k < args->lengths[word]; k++)
                memcpy(x + k * dim, args->characters + ids[k] * dim, dim * sizeof *x);
            memset(dx, 0, args->lengths[word] * dim * sizeof *dx);
            gradients_of_word(args, word, x, dx, args->dweights + part * args->number_of_weights);
            for (int64_t k = 0; k < args->lengths[word] * dim; k += LANES) {
                float *sum = dcharacters + ids[k / dim] * dim + k % dim;
                _mm512_storeu_ps(sum, _mm512_loadu_ps(sum) + _mm512_loadu_ps(dx + k));
            }
        }
    }
}

void OF_FLOAT32(convolution_gradient)(const ConvolutionGradient *args) {
    spacy_elmo_share_rows(args->parts, args->parts, args->words * args->features, gradients_of_parts, args);
}

#endif
