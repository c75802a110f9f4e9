/* Vectors of float32 for one kind of processor, PROCESSOR, and the functions of TEMPLATE with them. The same source,
   compiled for each of them by for_each_processor.h, computes the same bits in float32:
     - every number of a result is one lane, and the order in which it is summed depends on no number of lanes or rows;
     - what is multiplied and added in one rounding is written so, by FMA, and everything else is compiled without
       contraction (setup.py);
     - there is no estimate that makers of processors define differently.

   Words of the kernels that include this:
     inner     the dimension that a product sums over
     panel     sixteen columns of a matrix, stored row after row
     group     PAIR inner numbers, which one lane of an instruction multiplies and adds up (2 in bfloat16, 1 in float32)
     rank      a sequence's place in the batch, longest first
     part      one thread's share of the work
     xh        [x ; h], the two inputs of an LSTM step side by side
     d...      the gradient of ...; `dgiven`, that of an output before the gradient through the next step is added

   NUMBER is the type of what is multiplied; NAMED(name), the name of a function for this processor and type; TARGET, the
   instructions that it may use; WIDTH, the lanes of a vector; TILE, the most rows of sums that the registers hold, and
   WIDE(rows), of how many panels. LESS(a, b) is a < b ? a : b and MORE(a, b) a > b ? a : b, so b if one is NaN. A Group
   has PAIR numbers in each lane of a panel's part: LOAD_GROUPS, STORE_GROUPS from PAIR rows of sixteen numbers,
   SPREAD_GROUP of one place to all lanes, and MULTIPLY_ADD(left, right, sums). */

#undef VARIANT
#undef TARGET
#undef WIDTH
#undef TILE
#undef WIDE
#undef FMA
#undef LESS
#undef MORE
#undef SPREAD
#undef RECIPROCAL
#undef NUMBER
#undef PAIR
#undef COARSE
#undef Group
#undef LOAD_GROUPS
#undef STORE_GROUPS
#undef SPREAD_GROUP
#undef MULTIPLY_ADD
#undef LOAD_NUMBERS
#undef STORE_NUMBERS

#if PROCESSOR == AVX512 || PROCESSOR == AVX512_BF16
#define WIDTH 16
#define TILE 12
#define WIDE(rows) ((rows) <= 5 ? 4 : 2)
#define FMA(a, b, c) ((Lanes)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define LESS(a, b) ((Lanes)_mm512_min_ps((__m512)(a), (__m512)(b)))
#define MORE(a, b) ((Lanes)_mm512_max_ps((__m512)(a), (__m512)(b)))
#define SPREAD(x) ((Lanes)_mm512_set1_ps(x))
#elif PROCESSOR == AVX2
#define VARIANT float32_avx2
#define TARGET __attribute__((target("avx2,fma")))
#define WIDTH 8
#define TILE 6
#define WIDE(rows) ((rows) == 1 ? 4 : (rows) <= 3 ? 2 : 1)
#define FMA(a, b, c) ((Lanes)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define LESS(a, b) ((Lanes)_mm256_min_ps((__m256)(a), (__m256)(b)))
#define MORE(a, b) ((Lanes)_mm256_max_ps((__m256)(a), (__m256)(b)))
#define SPREAD(x) ((Lanes)_mm256_set1_ps(x))
#elif PROCESSOR == NEON
#define VARIANT float32_neon
#define TARGET
#define WIDTH 4
#define TILE 6
#define WIDE(rows) ((rows) <= 2 ? 2 : 1)
#define FMA(a, b, c) ((Lanes)vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#define LESS(a, b) NAMED(selected)((a) < (b), a, b)
#define MORE(a, b) NAMED(selected)((a) > (b), a, b)
#define SPREAD(x) ((Lanes)vdupq_n_f32(x))
#else
#define VARIANT float32_portable
#define TARGET
#define WIDTH 4
#define TILE 2
#define WIDE(rows) 1
#define FMA(a, b, c) NAMED(multiply_add)(a, b, c)
#define LESS(a, b) NAMED(selected)((a) < (b), a, b)
#define MORE(a, b) NAMED(selected)((a) > (b), a, b)
#define SPREAD(x) ((Lanes){x, x, x, x})
#endif

#if PROCESSOR == AVX512_BF16
#define VARIANT bfloat16_avx512
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,fma")))
/* Within 2^-14 of it: more than bfloat16 keeps. */
#define RECIPROCAL(x) ((Lanes)_mm512_rcp14_ps((__m512)(x)))
#define NUMBER uint16_t
#define PAIR 2
#define COARSE 1
#define Group __m512bh
#define LOAD_GROUPS(p) ((__m512bh)_mm512_loadu_si512(p))
#define SPREAD_GROUP(p) ((__m512bh)_mm512_set1_epi32(two_numbers(p)))
#define STORE_GROUPS(p, rows) _mm512_storeu_si512(p, paired_lanes((__m512)(rows)[0], (__m512)(rows)[1]))
#define MULTIPLY_ADD(left, right, sums) ((Lanes)_mm512_dpbf16_ps((__m512)(sums), left, right))
#define LOAD_NUMBERS(p)                                                                                                \
    ((Lanes)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(p))), 16))
#define STORE_NUMBERS(p, x) _mm256_storeu_si256((__m256i *)(p), (__m256i)_mm512_cvtneps_pbh((__m512)(x)))
#else
#if PROCESSOR == AVX512
#define VARIANT float32_avx512
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma")))
#endif
#define RECIPROCAL(x) NAMED(exact_reciprocal)(x)
#define NUMBER float
#define PAIR 1
#define COARSE 0
#define Group Lanes
#define LOAD_GROUPS LOAD
#define SPREAD_GROUP(p) SPREAD(*(p))
#define STORE_GROUPS(p, rows) STORE(p, (rows)[0])
#define MULTIPLY_ADD FMA
#define LOAD_NUMBERS LOAD
#define STORE_NUMBERS STORE
#endif

#undef INLINE
#define INLINE TARGET static inline __attribute__((always_inline))
#define NAMED(name) OF_VARIANT(name, VARIANT)
#define Lanes NAMED(Vector)
#define Bits NAMED(Integers)
#define LOAD(p) ((Lanes) * (const NAMED(Stored) *)(p))
#define STORE(p, x) (*(NAMED(Stored) *)(p) = (NAMED(Stored))(x))
#define VECTORS (PANEL / WIDTH)

typedef float Lanes __attribute__((vector_size(WIDTH * 4)));
typedef int32_t Bits __attribute__((vector_size(WIDTH * 4)));
typedef uint32_t NAMED(Unsigned) __attribute__((vector_size(WIDTH * 4)));
typedef float NAMED(Stored) __attribute__((vector_size(WIDTH * 4), aligned(4), may_alias));

/* a where the bits of the mask are set, b elsewhere. */
INLINE Lanes NAMED(selected)(Bits mask, Lanes a, Lanes b) { return (Lanes)((mask & (Bits)a) | (~mask & (Bits)b)); }

#if PROCESSOR == PORTABLE
INLINE Lanes NAMED(multiply_add)(Lanes a, Lanes b, Lanes c) {
    for (int lane = 0; lane < WIDTH; lane++)
        c[lane] = fmaf(a[lane], b[lane], c[lane]);
    return c;
}
#endif

/* x between -limit and limit; NaN stays NaN. */
INLINE Lanes NAMED(clipped)(Lanes x, Lanes limit) { return MORE(-limit, LESS(limit, x)); }

/* x, and 0 where the magnitude of y has reached `limit`. */
INLINE Lanes NAMED(unless_reached)(Lanes x, Lanes y, Lanes limit) {
    return (Lanes)((Bits)x & ~((y >= limit) | (y <= -limit)));
}

/* e^(scale x), but at most 2^most and at least 2^-most, within 3 units in the last place; `coarse`: within 1.1e-4 of it,
   where rounding to bfloat16 costs up to 2e-3. scale is 1, -1 or -2. NaN stays NaN. */
INLINE Lanes NAMED(exponential)(Lanes x, const float scale, const float most, const int coarse) {
    /* scale x = n ln 2 + scale r. Adding and taking away 1.5 * 2^23 rounds to the nearest whole number n; 127 more, and the
       lowest bits of the sum are the exponent of 2^n. ln 2 is the sum of two numbers, of which n times the first is exact. */
    const Lanes magic = SPREAD(12582912.0f + 127.0f);
    const float s = scale, s2 = s * s, s3 = s2 * s;
    x = NAMED(clipped)(x, SPREAD(most * 0.69314718f / (s < 0 ? -s : s)));
    Lanes sum = FMA(x, SPREAD(s * 1.44269504f), magic), n = sum - magic;
    Lanes r = FMA(n, SPREAD(2.12194440e-4f / s), FMA(n, SPREAD(-0.693359375f / s), x));
    /* e^(s r) for s r from -ln 2 / 2 to ln 2 / 2. */
    Lanes p;
    if (coarse) {
        p = FMA(SPREAD(0.16517947f * s3), r, SPREAD(0.5041312f * s2));
        p = FMA(p, r, SPREAD(1.00019592f * s));
    } else {
        p = FMA(SPREAD(0.00831252057f * s2 * s3), r, SPREAD(0.0418901555f * s2 * s2));
        p = FMA(p, r, SPREAD(0.166671142f * s3));
        p = FMA(p, r, SPREAD(0.499992311f * s2));
        p = FMA(p, r, SPREAD(s));
    }
    p = FMA(p, r, SPREAD(1.0f));
    return p * (Lanes)((NAMED(Unsigned))sum << 23);
}

/* 1 / x within a unit in the last place, for x from 2^-120 to 2^121, in less time than a division: a guess by the exponent,
   within 6 % of it, and two iterations, whose errors are the cube and the square of the one before. NaN stays NaN. */
INLINE Lanes NAMED(exact_reciprocal)(Lanes x) {
    const Lanes one = SPREAD(1.0f);
    Lanes r = (Lanes)(0x7ef311c7 - (Bits)x);
    Lanes e = FMA(-x, r, one);
    r = FMA(r, FMA(e, e, e), r);
    return FMA(r, FMA(-x, r, one), r);
}

/* tanh(x) within 2e-7; `coarse`: within 2e-4. */
INLINE Lanes NAMED(tanh)(Lanes x, const int coarse) {
    Lanes power = NAMED(exponential)(x, -2.0f, 40.0f, coarse), one = SPREAD(1.0f);
    return (one - power) * (coarse ? RECIPROCAL(one + power) : NAMED(exact_reciprocal)(one + power));
}

#if PROCESSOR == AVX512_BF16
/* Two bfloat16 that lie side by side, as one number: by one load, not by two and a shift. */
static inline int32_t two_numbers(const uint16_t *from) {
    int32_t both;
    memcpy(&both, from, sizeof both);
    return both;
}

/* In each lane a bfloat16 of `even` and, above it, one of `odd`. */
INLINE __m512i paired_lanes(__m512 even, __m512 odd) {
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i order = _mm512_or_si512(lane, _mm512_slli_epi32(_mm512_add_epi32(lane, _mm512_set1_epi32(16)), 16));
    return _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(odd, even));
}
#endif

#include TEMPLATE
#undef PROCESSOR
