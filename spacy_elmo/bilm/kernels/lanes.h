/* Sixteen float32 numbers at a time, by the instructions of AVX512.

   Words of the kernels that include this:
     inner     the dimension that a product sums over
     panel     64 columns of a matrix, stored row after row
     group     PAIR inner numbers, which one lane of an instruction multiplies and adds up (2 in bfloat16, 1 in float32)
     rank      a sequence's place in the batch, longest first
     part      one thread's share of the work
     scratch   memory that the caller provides and does not read
     xh        [x ; h], the two inputs of an LSTM step side by side
     d...      the gradient of ...; `dgiven`, that of an output before the gradient through the next step is added
     mask      the lanes that exist, at the end of a row */

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define AVX512_BF16 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#define INLINE_LANES AVX512 static inline __attribute__((always_inline))

enum { LANES = 16 };
typedef __m512 Lanes;

/* Two bfloat16 that lie side by side, as one number: by one load, not by two and a shift. */
static inline int32_t two_numbers(const uint16_t *from) {
    int32_t both;
    memcpy(&both, from, sizeof both);
    return both;
}

INLINE_LANES Lanes all_lanes(float x) { return _mm512_set1_ps(x); }

/* The first `count` lanes, and none if there are none. */
static inline __mmask16 mask_of(int64_t count) {
    return count >= LANES ? 0xffff : count <= 0 ? 0 : (__mmask16)((1u << count) - 1);
}

/* x between -limit and limit; NaN stays NaN, which these two instructions give back when it is their second number. */
INLINE_LANES Lanes clipped_lanes(Lanes x, Lanes limit) {
    return _mm512_max_ps(_mm512_setzero_ps() - limit, _mm512_min_ps(limit, x));
}

/* x, and 0 where the magnitude of y has reached `limit`. */
INLINE_LANES Lanes unless_reached(Lanes x, Lanes y, Lanes limit) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(_mm512_abs_ps(y), limit, _CMP_NGE_UQ), x);
}

/* e^(scale x), but at most e^29, so that the product of three of these is finite, and at least e^-29. NaN stays NaN.
   Within 2 units in the last place of float32; `coarse`: within 1.1e-4 of it, where rounding to bfloat16 costs up to 2e-3. */
INLINE_LANES Lanes exponential_lanes(Lanes x, float scale, const int coarse) {
    /* Adding and taking away 1.5 * 2^23 rounds to the nearest whole number n; 127 more, and the lowest bits of the sum are
       the exponent of 2^n. */
    const Lanes magic = all_lanes(12582912.0f + 127.0f);
    Lanes t = clipped_lanes(x * all_lanes(scale * 1.44269504088896341f), all_lanes(42.0f));
    Lanes whole = t + magic;
    Lanes r = t - (whole - magic);
    /* 2^r for r from -1/2 to 1/2, to 1e-4 of it and exact at 0, or to 9e-8. */
    Lanes p;
    if (coarse) {
        p = all_lanes(0.05500892922282219f);
        p = p * r + all_lanes(0.2422109693288803f);
        p = p * r + all_lanes(0.6932829022407532f);
        p = p * r + all_lanes(1.0f);
    } else {
        p = all_lanes(0.001326472731307149f);
        p = p * r + all_lanes(0.009671512991189957f);
        p = p * r + all_lanes(0.05550733581185341f);
        p = p * r + all_lanes(0.24022242426872253f);
        p = p * r + all_lanes(0.6931470036506653f);
        p = p * r + all_lanes(1.0f);
    }
    return p * _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(whole), 23));
}

/* 1 / x: the processor's estimate, within 2^-14 of it, and unless `coarse` a step of Newton's. Both together take a third
   of the time of a division. */
INLINE_LANES Lanes reciprocal_lanes(Lanes x, const int coarse) {
    Lanes r = _mm512_rcp14_ps(x);
    if (coarse) return r;
    return r + r * (all_lanes(1.0f) - x * r);
}

/* The numbers at these places from `from` on; 0 in lanes outside the mask, which are not read. */
INLINE_LANES Lanes gathered_lanes(const float *from, __m512i places, __mmask16 mask) {
    return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, places, from, sizeof *from);
}

/* In each lane a bfloat16 of `even` and, above it, one of `odd`. */
AVX512_BF16 static inline __attribute__((always_inline)) __m512i paired_lanes(Lanes even, Lanes odd) {
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i order = _mm512_or_si512(lane, _mm512_slli_epi32(_mm512_add_epi32(lane, _mm512_set1_epi32(16)), 16));
    return _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(odd, even));
}
