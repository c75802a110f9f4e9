/* Many steps of one direction of an LSTM layer in one call, forward and backward; see fused_lstm.py.

   A matrix is packed into panels of 64 columns (of the gates: 4 x 16, those of sixteen cells), which lie row after row, and
   in bfloat16 the rows two and two: what a product reads lies end to end. The gates are applied to the sums of a panel
   before they have left the cache. Sequences do not depend on each other, so every thread takes its own through all
   steps and waits for nobody. */

#include "numbers.h"
#include "threads.h"

/* Columns of a panel in vectors and in numbers, rows of a tile of sums that the registers hold, rows of sums and inner
   numbers that the first cache holds. */
enum { VECTORS = 4, PANEL = 64, TILE = 6, CHUNK = 96, INNER = 512 };

typedef struct {
    int64_t panels, inner, known_inner, columns, gates;
    const float *source;
    int64_t inner_step, column_step, gate_step;
    void *packed;
    int64_t panel_step;
} Packing;

typedef struct {
    int64_t parts, steps;
    const int64_t *rows;
    int64_t dim, width;
    const void *weights, *projection;
    const float *bias;
    float cell_clip, out_clip;
    void *read;
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
    float *dread, *dhidden, *dstate, *dbias;
} FusedBackward;

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)

#include "lanes.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

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

#define LOW uint16_t
#define PAIR 2
#define NAMED(name) name##_bfloat16_2
#define TARGET AVX512_BF16
#define Group __m512bh
#define LOAD_GROUPS(p) ((__m512bh)_mm512_loadu_si512(p))
#define SPREAD_GROUP(p) ((__m512bh)_mm512_set1_epi32((int)((p)[0] | (uint32_t)(p)[1] << 16)))
#define STORE_GROUPS(p, rows) _mm512_storeu_si512(p, paired_lanes((rows)[0], (rows)[1]))
#define MULTIPLY_ADD _mm512_dpbf16_ps
#define LOAD_LOW(p)                                                                                                    \
    _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(p))), 16))
#define STORE_LOW(p, x) _mm256_storeu_si256((__m256i *)(p), (__m256i)_mm512_cvtneps_pbh(x))
#include "fused_lstm.h"
#undef LOW
#undef PAIR
#undef NAMED
#undef TARGET
#undef STORE_GROUPS
#undef Group
#undef LOAD_GROUPS
#undef SPREAD_GROUP
#undef MULTIPLY_ADD
#undef LOAD_LOW
#undef STORE_LOW

#define LOW float
#define PAIR 1
#define NAMED(name) name##_float32_2
#define TARGET AVX512
#define Group __m512
#define LOAD_GROUPS _mm512_loadu_ps
#define SPREAD_GROUP(p) _mm512_set1_ps(*(p))
#define STORE_GROUPS(p, rows) _mm512_storeu_ps(p, (rows)[0])
#define MULTIPLY_ADD(sums, left, right) _mm512_fmadd_ps(left, right, sums)
#define LOAD_LOW _mm512_loadu_ps
#define STORE_LOW _mm512_storeu_ps
#include "fused_lstm.h"

/* Whether this processor has the instructions. */
int64_t fused_here_float32_2(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

int64_t fused_here_bfloat16_2(void) {
    return fused_here_float32_2() && __builtin_cpu_supports("avx512bf16");
}

#endif
