/* The character CNN of many words without their windows: those of a word lie in its characters, one behind the other, and
   the features at all positions are dropped once their maximum is known. See convolution.py. */

#include <math.h>
#include <stddef.h>

#include "threads.h"

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)

/* Positions whose sums the first cache holds beside a panel. */
enum { CHUNK = 48 };

typedef struct {
    int64_t threads, words, columns, dim, filters, features;
    const int64_t *widths, *numbers, *lengths;
    const int32_t *ids;
    const void *characters, *weights;
    const float *biases;
    void *room;
    float *maxima;
    int32_t *winners;
} Convolution;

#define TEMPLATE "convolution.h"
#include "avx512_types.h"

typedef struct {
    int64_t parts, words, columns, dim, filters, features;
    const int64_t *widths, *numbers, *lengths;
    const int32_t *ids;
    const float *characters, *weights, *dmaxima;
    const int32_t *winners;
    float *room;
    int64_t number_of_characters, number_of_weights;
    float *dcharacters, *dweights;
} ConvolutionGradient;

/* The gradient of one feature goes to the window that was its maximum: to its characters and to its weights. */
AVX512 static void gradients_of_word(const ConvolutionGradient *of, int64_t word, const float *x, float *dx,
                                     float *dweights) {
    const float *weights = of->weights, *dmaxima = of->dmaxima + word * of->features;
    const int32_t *winners = of->winners + word * of->features;
    for (int64_t filter = 0; filter < of->filters; filter++) {
        const int64_t size = of->widths[filter] * of->dim;
        for (int64_t n = 0; n < of->numbers[filter]; n++, weights += size, dweights += size, dmaxima++, winners++) {
            /* Where relu has shut a feature. */
            if (*dmaxima == 0.0f) continue;
            const Lanes gradient = all_lanes(*dmaxima);
            const float *window = x + *winners * of->dim;
            float *dwindow = dx + *winners * of->dim;
            for (int64_t k = 0; k < size; k += LANES) {
                _mm512_storeu_ps(dweights + k, _mm512_loadu_ps(dweights + k) + gradient * _mm512_loadu_ps(window + k));
                _mm512_storeu_ps(dwindow + k, _mm512_loadu_ps(dwindow + k) + gradient * _mm512_loadu_ps(weights + k));
            }
        }
    }
}

AVX512 static void gradients_of_parts(const void *arguments, int64_t first, int64_t last) {
    const ConvolutionGradient *of = arguments;
    for (int64_t part = first; part < last; part++) {
        const int64_t dim = of->dim, size = of->columns * dim;
        float *x = of->room + part * 2 * size, *dx = x + size;
        float *dcharacters = of->dcharacters + part * of->number_of_characters;
        for (int64_t word = of->words * part / of->parts; word < of->words * (part + 1) / of->parts; word++) {
            const int32_t *ids = of->ids + word * of->columns;
            for (int64_t k = 0; k < of->lengths[word]; k++)
                memcpy(x + k * dim, of->characters + ids[k] * dim, dim * sizeof *x);
            memset(dx, 0, of->lengths[word] * dim * sizeof *dx);
            gradients_of_word(of, word, x, dx, of->dweights + part * of->number_of_weights);
            for (int64_t k = 0; k < of->lengths[word] * dim; k += LANES) {
                float *sum = dcharacters + ids[k / dim] * dim + k % dim;
                _mm512_storeu_ps(sum, _mm512_loadu_ps(sum) + _mm512_loadu_ps(dx + k));
            }
        }
    }
}

void OF_FLOAT32(convolution_gradient)(const ConvolutionGradient *of) {
    spacy_elmo_share_rows(of->parts, of->parts, of->words * of->features, gradients_of_parts, of);
}

#endif
