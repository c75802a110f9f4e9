/* Weights as panels, from float32, and the products that read them; see panels.py. */

#include "numbers.h"

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)

typedef struct {
    int64_t panels, inner, known_inner, columns, gates;
    const float *source;
    int64_t inner_step, column_step, gate_step;
    void *packed;
    int64_t panel_step;
} Packing;

#define TEMPLATE "panels.h"
#include "both_types.h"

/* Whether this processor has the instructions. */
int64_t avx512_here_float32_2(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

int64_t avx512_here_bfloat16_2(void) {
    return avx512_here_float32_2() && __builtin_cpu_supports("avx512bf16");
}

#endif
