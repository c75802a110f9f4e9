/* Digests of what the kernels compute from numbers that are the same everywhere, for each kind of processor that this one
   runs: test_compilers.py compares those of several compilers and architectures. The structures are those of the kernels. */

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol_names.h"

typedef struct {
    int64_t panels, inner, known_inner, columns, gates;
    const float *source;
    int64_t inner_step, column_step, gate_step;
    void *packed;
    int64_t panel_step;
} Packing;

typedef struct {
    const void *numbers;
    const uint16_t *half;
} Panels;

typedef struct {
    int64_t threads, rows, inner, columns;
    const float *left;
    int64_t row_step;
    Panels panels;
    const float *right;
    int64_t inner_step, column_step;
    const float *start;
    float *sums;
    int64_t sum_step;
} Product;

typedef struct {
    Panels gates, projection;
    const float *bias;
} LayerWeights;

typedef struct {
    int64_t parts, layers, directions, steps;
    const int64_t *rows;
    int64_t sequences, dim, width, x_width, columns, x_columns;
    const LayerWeights *weights;
    double cell_clip, out_clip;
    int64_t residual;
    const float *vectors;
    const int64_t *types;
    float *values, *outputs, *h, *c;
    int64_t hidden_step;
    float *scratch;
    void *xh, *hiddens, *gates;
    float *cells;
} Forward;

typedef struct {
    int64_t threads, words, columns, dim, groups, features;
    const int64_t *widths, *filters, *lengths;
    const int32_t *ids;
    const float *characters, *weights, *biases;
    float *scratch, *maxima;
    int32_t *winners;
    int64_t activation;
} Convolution;

typedef struct {
    int64_t threads, rows, dim;
    float *a, *b, *c, *d;
} Rows;

static uint64_t state;

/* Numbers from -scale to scale, exact in float32. */
static float *numbers(int64_t count, float scale) {
    float *x = malloc((size_t)(count + 1) * sizeof *x);
    for (int64_t k = 0; k < count; k++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        x[k] = (float)((int32_t)(state >> 40) - (1 << 23)) * scale / (1 << 23);
    }
    return x;
}

/* Multiples of 2^-10 from -1/2 to 1/2, which are exact in float16. */
static float *halves(int64_t count) {
    float *x = numbers(count, 512);
    for (int64_t k = 0; k < count; k++)
        x[k] = roundf(x[k]) / 1024;
    return x;
}

static uint16_t *as_half(const float *x, int64_t count) {
    uint16_t *half = malloc((size_t)count * sizeof *half);
    for (int64_t k = 0; k < count; k++) {
        int exponent;
        const float mantissa = frexpf(fabsf(x[k]), &exponent); /* from 1/2 to 1, times 2^exponent */
        half[k] = (uint16_t)(x[k] == 0 ? 0 : (exponent + 14) << 10 | ((int)(mantissa * 2048) & 1023));
        if (x[k] < 0) half[k] |= 0x8000;
    }
    return half;
}

static uint64_t digest(const void *from, size_t bytes) {
    uint64_t hash = 14695981039346656037u;
    for (size_t k = 0; k < bytes; k++)
        hash = (hash ^ ((const unsigned char *)from)[k]) * 1099511628211u;
    return hash;
}

#define DECLARED(name, type, variant) extern void OF_VARIANT(name, variant)(const type *);
#define KERNELS(variant)                                                                                               \
    extern int64_t OF_VARIANT(here, variant)(void);                                                                    \
    DECLARED(pack_panels, Packing, variant)                                                                            \
    DECLARED(product, Product, variant)                                                                                \
    DECLARED(fused_forward, Forward, variant)                                                                          \
    DECLARED(convolution, Convolution, variant)                                                                        \
    DECLARED(highway, Rows, variant)                                                                                   \
    DECLARED(softmax_terms, Rows, variant)                                                                             \
    DECLARED(row_products, Rows, variant)
#define RUN(variant)                                                                                                   \
    if (OF_VARIANT(here, variant)() || strstr(#variant, "portable"))                                                   \
        run(#variant, OF_VARIANT(pack_panels, variant), OF_VARIANT(product, variant),                                  \
            OF_VARIANT(fused_forward, variant), OF_VARIANT(convolution, variant), OF_VARIANT(highway, variant),        \
            OF_VARIANT(softmax_terms, variant), OF_VARIANT(row_products, variant));

static void run(const char *variant, void (*pack)(const Packing *), void (*product)(const Product *),
                void (*forward)(const Forward *), void (*convolution)(const Convolution *), void (*highway)(const Rows *),
                void (*softmax)(const Rows *), void (*row_products)(const Rows *)) {
    state = 1;
#define SAY(name, x, count) printf("%s %s %016" PRIx64 "\n", variant, name, digest(x, (size_t)(count) * 4))
    const int64_t sizes[][3] = {{1, 1, 1}, {7, 300, 17}, {130, 64, 130}, {19, 520, 64}, {3, 5, 200}};
    for (int k = 0; k < 5; k++) {
        const int64_t rows = sizes[k][0], inner = sizes[k][1], columns = sizes[k][2];
        float *left = numbers(rows * inner, 1), *right = numbers(inner * columns, 1), *bias = numbers(columns, 1);
        float *all = numbers(rows * columns, 0), *some = numbers(rows * columns, 0);
        product(&(Product){1, rows, inner, columns, left, inner, {NULL, NULL}, right, columns, 1, bias, all, columns});
        SAY("product", all, rows * columns);
        /* Any number of rows at a time, and the matrix transposed. */
        float *turned = numbers(inner * columns, 0);
        for (int64_t a = 0; a < inner; a++)
            for (int64_t b = 0; b < columns; b++)
                turned[b * inner + a] = right[a * columns + b];
        for (int64_t row = 0, next = 1; row < rows; row += next++) {
            const int64_t count = next < rows - row ? next : rows - row;
            product(&(Product){1, count, inner, columns, left + row * inner, inner, {NULL, NULL}, turned, 1, inner, bias,
                               some + row * columns, columns});
        }
        if (memcmp(all, some, (size_t)(rows * columns) * 4)) printf("%s product depends on its rows\n", variant);
        free(left), free(right), free(bias), free(all), free(some), free(turned);
    }

    enum { DIM = 48, WIDTH = 32, STEPS = 9, SEQUENCES = 20 };
    int64_t rows[STEPS], total = 0;
    for (int64_t step = 0; step < STEPS; step++)
        total += rows[step] = SEQUENCES - 2 * step;
    float *gates = numbers(2 * WIDTH * 4 * DIM, 0.7f), *last = numbers(DIM * WIDTH, 0.5f), *bias = numbers(4 * DIM, 1);
    float *packed = numbers(2 * WIDTH * 4 * DIM, 0), *packed_last = numbers(DIM * WIDTH, 0);
    const Packing gates_packing = {4 * DIM / 16, 2 * WIDTH, 2 * WIDTH, DIM, 4, gates, 4 * DIM, 1, DIM, packed, 2 * WIDTH * 16};
    const Packing last_packing = {WIDTH / 16, DIM, DIM, WIDTH, 1, last, WIDTH, 1, 0, packed_last, DIM * 16};
    pack(&gates_packing), pack(&last_packing);
    float *xh = numbers(total * 2 * WIDTH, 2), *c = numbers(SEQUENCES * DIM, 3), *kept = numbers(total * 4 * DIM, 0);
    float *space = numbers(total * 4 * DIM, 0), *hiddens = numbers(total * DIM, 0), *cells = numbers(total * DIM, 0);
    float *h = numbers(total * WIDTH, 0), *values = malloc(2 * (size_t)total * WIDTH * sizeof *values);
    xh[3] = NAN, xh[2 * WIDTH + 1] = INFINITY, xh[4 * WIDTH + 5] = -1e30f;
    for (int64_t k = 0; k < total; k++) {
        memcpy(values + k * WIDTH, xh + 2 * k * WIDTH, WIDTH * sizeof *values);
        if (k < SEQUENCES) memcpy(h + k * WIDTH, xh + (2 * k + 1) * WIDTH, WIDTH * sizeof *values);
    }
    float by_cell[4 * DIM];
    for (int k = 0; k < 4 * DIM; k++)
        by_cell[k] = bias[k / 16 % 4 * DIM + k / 64 * 16 + k % 16];
    LayerWeights layer = {{packed, NULL}, {packed_last, NULL}, by_cell};
    float *outputs = values + total * WIDTH;
    forward(&(Forward){1, 1, 1, STEPS, rows, SEQUENCES, DIM, WIDTH, WIDTH, WIDTH, WIDTH, &layer, 2.5, 0.8, 0, NULL, NULL, values,
                       outputs, h, c, DIM, space, xh, hiddens, kept, cells});
    for (int64_t k = 0; k < total * WIDTH; k++)
        if (outputs[k] != outputs[k]) outputs[k] = 7; /* what bits a NaN has is no one's promise */
    SAY("lstm", outputs, total * WIDTH);
    SAY("gates", kept + SEQUENCES / 2 * 4 * DIM, SEQUENCES / 2 * 4 * DIM);

    enum { WORDS = 7, COLUMNS = 20, CHARACTER = 16, FEATURES = 45 };
    int32_t ids[WORDS * COLUMNS], winners[WORDS * FEATURES];
    for (int k = 0; k < WORDS * COLUMNS; k++)
        ids[k] = k * 7 % 11;
    const int64_t widths[] = {1, 3}, filters[] = {20, 25}, lengths[] = {3, 20, 7, 8, 11, 19, 4};
    float *table = numbers(11 * CHARACTER, 1), *weights = numbers((1 + 3) * CHARACTER * 32, 1);
    float *biases = numbers(64, 1), *scratch = numbers(WORDS * COLUMNS * CHARACTER, 0);
    float *maxima = numbers(WORDS * FEATURES, 0);
    for (int64_t activation = 0; activation < 3; activation++) {
        convolution(&(Convolution){1, WORDS, COLUMNS, CHARACTER, 2, FEATURES, widths, filters, lengths, ids, table, weights,
                                   biases, scratch, maxima, winners, activation});
        SAY("convolution", maxima, WORDS * FEATURES);
    }

    enum { MANY = 5, LONG = 61 };
    float *x = numbers(MANY * LONG, 3), *both = numbers(MANY * 2 * LONG, 30), *out = numbers(MANY * LONG, 0);
    highway(&(Rows){1, MANY, LONG, x, both, out, NULL});
    SAY("highway", out, MANY * LONG);
    row_products(&(Rows){1, MANY, LONG, x, out, both, NULL});
    SAY("products", both, MANY);
    float *logits = numbers(MANY * LONG, 50), *sums = numbers(MANY, 0), *logs = numbers(MANY, 0);
    logits[5] = -INFINITY;
    softmax(&(Rows){1, MANY, LONG, logits, x, sums, logs});
    SAY("terms", logits, MANY * LONG);
    SAY("logarithms", logs, MANY);

    /* Two layers in two directions with the same weights, which have a float16 form. Few sequences have all steps, for which the
       kernel has another order of work. */
    enum { LAYERS = 2 };
    memcpy(gates, halves(2 * WIDTH * 4 * DIM), 2 * WIDTH * 4 * DIM * sizeof *gates);
    memcpy(last, halves(DIM * WIDTH), DIM * WIDTH * sizeof *last);
    pack(&gates_packing), pack(&last_packing);
    layer.gates.half = as_half(packed, 2 * WIDTH * 4 * DIM), layer.projection.half = as_half(packed_last, DIM * WIDTH);
    const LayerWeights layers[LAYERS * 2] = {layer, layer, layer, layer};
    float *vectors = numbers(total * WIDTH, 2), *all = numbers((LAYERS + 1) * 2 * total * WIDTH, 0);
    int64_t *types = malloc(2 * (size_t)total * sizeof *types);
    for (int64_t k = 0; k < 2 * total; k++)
        types[k] = k * 7 % total;
    forward(&(Forward){1, LAYERS, 2, STEPS, rows, SEQUENCES, DIM, WIDTH, WIDTH, WIDTH, WIDTH, layers, 2.5, 0.8, 1, vectors, types,
                       all, all + 2 * total * WIDTH, numbers(LAYERS * 2 * SEQUENCES * WIDTH, 1),
                       numbers(LAYERS * 2 * SEQUENCES * DIM, 3), DIM, space, NULL, NULL, NULL, NULL});
    SAY("layers", all, (LAYERS + 1) * 2 * total * WIDTH);
}

KERNELS(float32_portable)
#if defined(__x86_64__)
KERNELS(float32_avx2)
KERNELS(float32_avx512)
#elif defined(__aarch64__)
KERNELS(float32_neon)
#endif

int main(void) {
    RUN(float32_portable)
#if defined(__x86_64__)
    RUN(float32_avx2)
    RUN(float32_avx512)
#elif defined(__aarch64__)
    RUN(float32_neon)
#endif
    return 0;
}
