/* Weights as panels, from float32, and the products that read them; see panels.py. The code is in
   panels_template.h, which is included once per number type. */

#include <stdint.h>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)

typedef struct {
    int64_t panels;
    int64_t inner, known_inner; /* rows of a panel, and of the matrix; those beyond are zero */
    int64_t columns;            /* of the matrix, or of each gate */
    int64_t gates;              /* 1: a panel has sixteen columns of each of four gates */
    const float *source;        /* (known_inner, columns) or (known_inner, 4, columns), with these steps: */
    int64_t inner_step, column_step, gate_step;
    void *packed; /* (panels, inner, 64), panels `panel_step` numbers apart */
    int64_t panel_step;
} Packing;

#define TEMPLATE "panels_template.h"
#include "for_each_type_avx512.h"

/* Whether this processor has the instructions. */
int64_t OF_FLOAT32(avx512_here)(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

int64_t OF_BFLOAT16(avx512_here)(void) {
    return OF_FLOAT32(avx512_here)() && __builtin_cpu_supports("avx512bf16");
}

#endif
