/* Includes TEMPLATE once for each kind of processor of this architecture, and for products of bfloat16, where it has
   instructions for them; native.py chooses among them when it loads the library. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

/* Columns of a panel, and of the sums that are computed together: those of four panels, which for the gates of an LSTM are
   one of each gate. */
enum { PANEL = 16, GATES = 4, COLUMNS = 64 };

/* Python gives structures as fields of 8 bytes (native.py). */
_Static_assert(sizeof(void *) == 8, "the kernels are for processors of 64 bits");

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* (rows, 16 panels) sums <- start + left right; `start` (16 panels,) is that of every row; NULL: the sums so far. `left` is
   (rows, groups), its rows `row_step` numbers apart and its groups `group_step`; the panels of `right` lie `panel_step`
   apart, and the rows of the sums `sum_step`. Defined in panels_template.h. */
#define DECLARE_TILES(name, number)                                                                                    \
    void name(int64_t rows, int64_t panels, int64_t groups, const number *left, int64_t row_step, int64_t group_step,  \
              const number *right, int64_t panel_step, float *sums, int64_t sum_step, const float *start)

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
