/* Weights as panels, from float32, and the products that read them; see panels.py. */

#include <stdint.h>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)

typedef struct {
    int64_t panels, inner, known_inner, columns, gates;
    const float *source;
    int64_t inner_step, column_step, gate_step;
    void *packed;
    int64_t panel_step;
} Packing;

#define TEMPLATE "panels.h"
#include "avx512_types.h"

/* Whether this processor has the instructions. */
int64_t OF_FLOAT32(avx512_here)(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

int64_t OF_BFLOAT16(avx512_here)(void) {
    return OF_FLOAT32(avx512_here)() && __builtin_cpu_supports("avx512bf16");
}

#endif
