/* Include the file TEMPLATE once for each kind of processor of this architecture, and once more for bfloat16 if there are
   instructions for it. native.py chooses one kind when Python loads the library. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "panels.h"
#include "symbol_names.h"
#include "threads.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define PORTABLE 0
#define AVX2 1
#define AVX512 2
#define AVX512_BF16 3
#define NEON 4

/* Python passes a structure as fields of 8 bytes (native.py). */
_Static_assert(sizeof(void *) == 8, "the kernels are for processors of 64 bits");

/* Compute sums = start + left right. The function is defined in panels_template.h.

     sums    (rows, 16 panels); the distance of rows is `sum_step` numbers
     start   (16 panels,), for every row; NULL: add to the numbers that are in `sums`
     left    (rows, groups); the distance of rows is `row_step` numbers, and of groups `group_step`
     right   panels with `groups` groups of rows; the distance of panels is `panel_step` numbers */
#define DECLARE_TILES(name, number)                                                                                    \
    void name(int64_t rows, int64_t panels, int64_t groups, const number *left, int64_t row_step, int64_t group_step,  \
              Panels right, int64_t panel_step, float *sums, int64_t sum_step, const float *start)

#define PROCESSOR PORTABLE
#include "lanes.h"

#if defined(__x86_64__)
#define PROCESSOR AVX2
#include "lanes.h"
#define PROCESSOR AVX512
#include "lanes.h"
#define PROCESSOR AVX512_BF16
#include "lanes.h"
#elif defined(__aarch64__)
#define PROCESSOR NEON
#include "lanes.h"
#endif
