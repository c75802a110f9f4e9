/* Functions of one number that a compiler turns into vectors, and bfloat16. */

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "compiler.h"

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
    /* Adding and taking away 1.5 * 2^23 rounds to the nearest whole number. The lowest bits of the sum are those of n, also
       where a conversion would not be defined, because x is not a number. */
    float sum = x * 1.44269504088896341f + 12582912.0f;
    float n = sum - 12582912.0f;
    float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return p * of_bits((to_bits(sum) + 127u) << 23);
}

INLINE float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }

INLINE float tanh_(float x) { return 2.0f / (1.0f + exponential(-2.0f * x)) - 1.0f; }

INLINE float clipped(float x, float clip) {
    x = x > clip ? clip : x;
    return x < -clip ? -clip : x;
}

/* bfloat16 is the upper half of a float32, rounded to even. */
INLINE uint16_t to_bfloat16(float x) {
    uint32_t bits = to_bits(x);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return (uint16_t)(x != x ? 0x7fc0u : rounded);
}

INLINE float from_bfloat16(uint16_t x) { return of_bits((uint32_t)x << 16); }
