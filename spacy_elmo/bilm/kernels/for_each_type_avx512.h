/* Includes TEMPLATE once for products of bfloat16 and once for products of float32, both by AVX512.

   NUMBER is the type of what is multiplied; PAIR, how many such numbers one lane of an instruction multiplies and adds
   up; COARSE, 1 if functions need no more digits than a bfloat16 has; NAMED(name), the name of a function for this type; TARGET, the instructions that it may use. A Group has PAIR numbers in
   each of sixteen lanes: LOAD_GROUPS, STORE_GROUPS from PAIR vectors of float32, SPREAD_GROUP of one place to all lanes,
   and MULTIPLY_ADD(sums, left, right). */

#include "lanes.h"
#include "symbol_names.h"

/* Columns of a panel in vectors and in numbers, and rows of a tile of sums, which the registers hold. */
enum { VECTORS = 4, PANEL = 64, TILE = 6 };

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* (rows, 64) sums <- start + left right, `right` being a panel, and `start` (64,) that of every row; NULL: the sums so far.
   The rows of `left` lie `row_step` apart and its groups of PAIR numbers `group_step`, the rows of the sums `sum_step`. A
   row's sums do not depend on the rows beside it. Defined in panels_template.h. */
#define DECLARE_TILES(name, number)                                                                                    \
    void name(int64_t rows, int64_t groups, const number *left, int64_t row_step, int64_t group_step,                  \
              const number *right, float *sums, int64_t sum_step, const float *start)
DECLARE_TILES(OF_FLOAT32(tiles), float);
DECLARE_TILES(OF_BFLOAT16(tiles), uint16_t);

#define NUMBER uint16_t
#define PAIR 2
#define COARSE 1
#define NAMED(name) OF_BFLOAT16(name)
#define TARGET AVX512_BF16
#define Group __m512bh
#define LOAD_GROUPS(p) ((__m512bh)_mm512_loadu_si512(p))
#define SPREAD_GROUP(p) ((__m512bh)_mm512_set1_epi32(two_numbers(p)))
#define STORE_GROUPS(p, rows) _mm512_storeu_si512(p, paired_lanes((rows)[0], (rows)[1]))
#define MULTIPLY_ADD _mm512_dpbf16_ps
#define LOAD_NUMBERS(p)                                                                                                \
    _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(p))), 16))
#define LOAD_MASKED(p, mask)                                                                                           \
    _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, p)), 16))
#define STORE_NUMBERS(p, x) _mm256_storeu_si256((__m256i *)(p), (__m256i)_mm512_cvtneps_pbh(x))
#include TEMPLATE
#undef NUMBER
#undef PAIR
#undef COARSE
#undef NAMED
#undef TARGET
#undef Group
#undef LOAD_GROUPS
#undef STORE_GROUPS
#undef SPREAD_GROUP
#undef MULTIPLY_ADD
#undef LOAD_NUMBERS
#undef LOAD_MASKED
#undef STORE_NUMBERS

#define NUMBER float
#define PAIR 1
#define COARSE 0
#define NAMED(name) OF_FLOAT32(name)
#define TARGET AVX512
#define Group __m512
#define LOAD_GROUPS _mm512_loadu_ps
#define SPREAD_GROUP(p) _mm512_set1_ps(*(p))
#define STORE_GROUPS(p, rows) _mm512_storeu_ps(p, (rows)[0])
#define MULTIPLY_ADD(sums, left, right) _mm512_fmadd_ps(left, right, sums)
#define LOAD_NUMBERS _mm512_loadu_ps
#define LOAD_MASKED(p, mask) _mm512_maskz_loadu_ps(mask, p)
#define STORE_NUMBERS _mm512_storeu_ps
#include TEMPLATE
#undef NUMBER
#undef PAIR
#undef COARSE
#undef NAMED
#undef TARGET
#undef Group
#undef LOAD_GROUPS
#undef STORE_GROUPS
#undef SPREAD_GROUP
#undef MULTIPLY_ADD
#undef LOAD_NUMBERS
#undef LOAD_MASKED
#undef STORE_NUMBERS
