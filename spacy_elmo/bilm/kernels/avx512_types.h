/* Includes TEMPLATE once for products of bfloat16 and once for products of float32, both by AVX512.

   LOW is the type of what is multiplied; PAIR, how many such numbers one lane of an instruction multiplies and adds up;
   NAMED(name), the name of a function for this type; TARGET, the instructions that it may use. A Group has PAIR numbers in
   each of sixteen lanes: LOAD_GROUPS, STORE_GROUPS from PAIR vectors of float32, SPREAD_GROUP of one place to all lanes,
   and MULTIPLY_ADD(sums, left, right). */

#include "lanes.h"
#include "names.h"

/* Columns of a panel in vectors and in numbers, and rows of a tile of sums, which the registers hold. */
enum { VECTORS = 4, PANEL = 64, TILE = 6 };

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

#define LOW uint16_t
#define PAIR 2
#define NAMED(name) OF_BFLOAT16(name)
#define TARGET AVX512_BF16
#define Group __m512bh
#define LOAD_GROUPS(p) ((__m512bh)_mm512_loadu_si512(p))
#define SPREAD_GROUP(p) ((__m512bh)_mm512_set1_epi32(two_numbers(p)))
#define STORE_GROUPS(p, rows) _mm512_storeu_si512(p, paired_lanes((rows)[0], (rows)[1]))
#define MULTIPLY_ADD _mm512_dpbf16_ps
#define LOAD_LOW(p)                                                                                                    \
    _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(p))), 16))
#define LOAD_SOME(p, there)                                                                                            \
    _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, p)), 16))
#define STORE_LOW(p, x) _mm256_storeu_si256((__m256i *)(p), (__m256i)_mm512_cvtneps_pbh(x))
/* (rows, 64) sums <- start + left right, `right` being a panel, and `start` (64,) that of every row; NULL: the sums so far.
   The rows of `left` lie `row_step` apart and its groups of PAIR numbers `group_step`, the rows of the sums `sum_step`. A
   row's sums do not depend on the rows beside it. */
void NAMED(tiles)(int64_t rows, int64_t groups, const LOW *left, int64_t row_step, int64_t group_step, const LOW *right,
                  float *sums, int64_t sum_step, const float *start);
#include TEMPLATE
#undef LOW
#undef PAIR
#undef NAMED
#undef TARGET
#undef Group
#undef LOAD_GROUPS
#undef STORE_GROUPS
#undef SPREAD_GROUP
#undef MULTIPLY_ADD
#undef LOAD_LOW
#undef LOAD_SOME
#undef STORE_LOW

#define LOW float
#define PAIR 1
#define NAMED(name) OF_FLOAT32(name)
#define TARGET AVX512
#define Group __m512
#define LOAD_GROUPS _mm512_loadu_ps
#define SPREAD_GROUP(p) _mm512_set1_ps(*(p))
#define STORE_GROUPS(p, rows) _mm512_storeu_ps(p, (rows)[0])
#define MULTIPLY_ADD(sums, left, right) _mm512_fmadd_ps(left, right, sums)
#define LOAD_LOW _mm512_loadu_ps
#define LOAD_SOME(p, there) _mm512_maskz_loadu_ps(there, p)
#define STORE_LOW _mm512_storeu_ps
void NAMED(tiles)(int64_t rows, int64_t groups, const LOW *left, int64_t row_step, int64_t group_step, const LOW *right,
                  float *sums, int64_t sum_step, const float *start);
#include TEMPLATE
#undef LOW
#undef PAIR
#undef NAMED
#undef TARGET
#undef Group
#undef LOAD_GROUPS
#undef STORE_GROUPS
#undef SPREAD_GROUP
#undef MULTIPLY_ADD
#undef LOAD_LOW
#undef LOAD_SOME
#undef STORE_LOW
