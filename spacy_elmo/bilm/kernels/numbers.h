/* What the C files share: variants for several processors, the types, and e^x that a compiler can vectorise. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
/* One build for every processor: the best variant is chosen when the library is loaded. */
#if __GNUC__ >= 12
#define VARIANTS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VARIANTS __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#else
#define VARIANTS
#endif
#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

INLINE float of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

INLINE uint32_t to_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* e^x within 2 units in the last place: x = n ln 2 + r, and a polynomial for e^r (Cephes, expf). */
INLINE float exponential(float x) {
    x = x > 88.0f ? 88.0f : x;
    x = x < -87.0f ? -87.0f : x;
    /* Adding and taking away 1.5 * 2^23 rounds to the nearest whole number. */
    float n = (x * 1.44269504088896341f + 12582912.0f) - 12582912.0f;
    float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return p * of_bits((uint32_t)((int32_t)n + 127) << 23);
}

INLINE float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }

INLINE float hyperbolic(float x) { return 2.0f / (1.0f + exponential(-2.0f * x)) - 1.0f; }

INLINE float clipped(float x, float clip) {
    x = x > clip ? clip : x;
    return x < -clip ? -clip : x;
}

/* bfloat16 is the upper half of a float32, rounded to even. */
INLINE uint16_t lowered(float x) {
    uint32_t bits = to_bits(x);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return (uint16_t)(x != x ? 0x7fc0u : rounded);
}

INLINE float raised(uint16_t x) { return of_bits((uint32_t)x << 16); }

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#endif

/* A sum or a maximum, lane by lane. Needs -fopenmp-simd, which has nothing to do with threads. */
#define PRAGMA(text) _Pragma(#text)
#define LANES(operation, name) PRAGMA(omp simd reduction(operation : name))

#define FLOAT_LOAD(x) (x)
#define FLOAT_STORE(x) (x)

/* A function for both types: DEFINE(NAME, LOW, LOAD, STORE) is a macro that spells it out. native.py explains the
   number. */
#define FOR_BOTH(DEFINE, name)                                                                                         \
    DEFINE(name##_float32_2, float, FLOAT_LOAD, FLOAT_STORE)                                                             \
    DEFINE(name##_bfloat16_2, uint16_t, raised, lowered)
