/* Vectors of float32 for one kind of processor, PROCESSOR, and the functions in the file TEMPLATE, which use them.
   for_each_processor.h compiles the same source once for each kind. In float32, all kinds compute the same bits:
     - Each number of a result has its own lane, so the order of a sum does not depend on the number of lanes or rows.
     - FMA multiplies and adds with one rounding. setup.py forbids the compiler to do this anywhere else.
     - No function uses an estimate, because processors of different makers estimate differently.

   Terms:
     inner     the dimension over which a matrix product sums
     panel     16 columns of a matrix, stored row after row
     group     PAIR inner numbers, which one instruction multiplies and adds in each lane (2 in bfloat16, 1 in float32)
     rank      index of a sequence in the batch, ordered from the longest to the shortest
     part      the work of one thread
     xh        [x ; h], the input and the previous output of an LSTM step, concatenated
     d...      the gradient of ...; `dgiven` is the gradient of an output without the gradient through the next step

   Macros:
     NUMBER           type of the numbers that are multiplied
     NAMED(name)      name of a function for this processor and type
     TARGET           instructions that a function may use
     WIDTH            number of lanes of a vector
     TILE             largest number of rows for which the registers hold the sums
     WIDE(rows)       number of panels for which the registers hold the sums of `rows` rows
     LESS, MORE       LESS(a, b) is a < b ? a : b, and MORE(a, b) is a > b ? a : b; both are b if one of them is NaN
     Group            a vector with one group in each lane
     LOAD_GROUPS      read a Group
     HALF             1 if LOAD_HALF exists
     LOAD_HALF        read a Group of float16 numbers, which float32 contains exactly
     STORE_GROUPS     write a Group, made of PAIR rows of 16 numbers
     SPREAD_GROUP     copy one group to all lanes
     MULTIPLY_ADD     add the products of two Groups, left and right, to sums */

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
#undef HALF
#undef LOAD_HALF
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
#define TARGET __attribute__((target("avx2,fma,f16c")))
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
/* The relative error is 2^-14, which is smaller than the rounding to bfloat16. */
#define RECIPROCAL(x) ((Lanes)_mm512_rcp14_ps((__m512)(x)))
#define NUMBER uint16_t
#define PAIR 2
#define COARSE 1
#define Group __m512bh
#define LOAD_GROUPS(p) ((__m512bh)_mm512_loadu_si512(p))
#define HALF 0
#define LOAD_HALF(p) LOAD_GROUPS(p)
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
#if PROCESSOR == PORTABLE
#define HALF 0
#define LOAD_HALF(p) LOAD_GROUPS((const float *)(p))
#else
#define HALF 1
#if PROCESSOR == AVX512
#define LOAD_HALF(p) ((Lanes)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(p))))
#elif PROCESSOR == AVX2
#define LOAD_HALF(p) ((Lanes)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p))))
#else
#define LOAD_HALF(p) ((Lanes)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))))
#endif
#endif
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

/* Return a where the bits of the mask are set, and b elsewhere. */
INLINE Lanes NAMED(selected)(Bits mask, Lanes a, Lanes b) { return (Lanes)((mask & (Bits)a) | (~mask & (Bits)b)); }

#if PROCESSOR == PORTABLE
INLINE Lanes NAMED(multiply_add)(Lanes a, Lanes b, Lanes c) {
    for (int lane = 0; lane < WIDTH; lane++)
        c[lane] = fmaf(a[lane], b[lane], c[lane]);
    return c;
}
#endif

/* Clip x to the range from -limit to limit. NaN stays NaN. */
INLINE Lanes NAMED(clipped)(Lanes x, Lanes limit) { return MORE(-limit, LESS(limit, x)); }

/* Return x, but 0 where y was clipped, so its magnitude is at least `limit`. */
INLINE Lanes NAMED(unless_reached)(Lanes x, Lanes y, Lanes limit) {
    return (Lanes)((Bits)x & ~((y >= limit) | (y <= -limit)));
}

/* Return e^(scale x), clipped to the range from 2^-most to 2^most. `scale` is 1, -1 or -2. NaN stays NaN. The error is at
   most 3 units in the last place. With `coarse`, the relative error is at most 1.1e-4; rounding to bfloat16 adds up to 2e-3. */
INLINE Lanes NAMED(exponential)(Lanes x, const float scale, const float most, const int coarse) {
    /* Split scale x into n ln 2 + scale r, for the nearest integer n. Adding 1.5 * 2^23 to a float rounds it to an integer,
       which the lowest bits of the sum contain. With 127 more, these bits are the exponent field of 2^n. ln 2 is split into
       two numbers, so that n times the first number is exact. */
    const Lanes magic = SPREAD(12582912.0f + 127.0f);
    const float s = scale, s2 = s * s, s3 = s2 * s;
    x = NAMED(clipped)(x, SPREAD(most * 0.69314718f / (s < 0 ? -s : s)));
    Lanes sum = FMA(x, SPREAD(s * 1.44269504f), magic), n = sum - magic;
    Lanes r = FMA(n, SPREAD(2.12194440e-4f / s), FMA(n, SPREAD(-0.693359375f / s), x));
    /* A polynomial for e^(s r), with s r between -ln 2 / 2 and ln 2 / 2. */
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

/* Return 1 / x for x from 2^-120 to 2^121, faster than a division. The error is at most one unit in the last place. The
   first guess, from the bits of x, has an error of at most 6 %. The first iteration cubes the error, and the second squares
   it. NaN stays NaN. */
INLINE Lanes NAMED(exact_reciprocal)(Lanes x) {
    const Lanes one = SPREAD(1.0f);
    Lanes r = (Lanes)(0x7ef311c7 - (Bits)x);
    Lanes e = FMA(-x, r, one);
    r = FMA(r, FMA(e, e, e), r);
    return FMA(r, FMA(-x, r, one), r);
}

/* Return tanh(x), with an error of at most 2e-7. With `coarse`, the error is at most 2e-4. */
INLINE Lanes NAMED(tanh)(Lanes x, const int coarse) {
    Lanes power = NAMED(exponential)(x, -2.0f, 40.0f, coarse), one = SPREAD(1.0f);
    return (one - power) * (coarse ? RECIPROCAL(one + power) : NAMED(exact_reciprocal)(one + power));
}

#if PROCESSOR == AVX512_BF16
/* Read two neighboring bfloat16 numbers as one integer. This takes one load instead of two loads and a shift. */
static inline int32_t two_numbers(const uint16_t *from) {
    int32_t both;
    memcpy(&both, from, sizeof both);
    return both;
}

/* Convert to bfloat16: each lane of the result has a number of `even` in its low half and a number of `odd` in its high half. */
INLINE __m512i paired_lanes(__m512 even, __m512 odd) {
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i order = _mm512_or_si512(lane, _mm512_slli_epi32(_mm512_add_epi32(lane, _mm512_set1_epi32(16)), 16));
    return _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(odd, even));
}
#endif

#include TEMPLATE
#undef PROCESSOR
