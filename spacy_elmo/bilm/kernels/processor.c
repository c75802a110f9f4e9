/* Functions that return 1 if this processor has the instructions of a kind of processor. */

#include <stdint.h>

#include "symbol_names.h"

/* Plain C is only fast if fmaf is one instruction. */
#if defined(FP_FAST_FMAF) || defined(__FP_FAST_FMAF)
int64_t OF_VARIANT(here, float32_portable)(void) { return 1; }
#else
int64_t OF_VARIANT(here, float32_portable)(void) { return 0; }
#endif

#if defined(__x86_64__)
#include <cpuid.h>

/* Bits of the results of the instruction CPUID, with the names in Intel's manual, volume 2A. */
#define FMA (1u << 12) /* leaf 1: ecx */
#define F16C (1u << 29)
#define OSXSAVE (1u << 27)
#define AVX2 (1u << 5) /* leaf 7, 0: ebx */
#define AVX512F (1u << 16)
#define AVX512DQ (1u << 17)
#define AVX512BW (1u << 30)
#define AVX512VL (1u << 31)
#define AVX512_BF16 (1u << 5) /* leaf 7, 1: eax */
/* The operating system must save these registers for each process: registers of 256 bits, and registers of 512 bits. */
#define YMM 0x6u
#define ZMM 0xe6u

typedef struct {
    uint32_t eax, ebx, ecx, edx;
} Answer;

static Answer ask(uint32_t leaf, uint32_t subleaf) {
    Answer answer = {0};
    __get_cpuid_count(leaf, subleaf, &answer.eax, &answer.ebx, &answer.ecx, &answer.edx);
    return answer;
}

static int has(uint32_t bits, uint32_t wanted) { return (bits & wanted) == wanted; }

static int has_fma_and_halves(void) { return has(ask(1, 0).ecx, FMA | F16C); }

static int saves(uint32_t wanted) {
    if (!has(ask(1, 0).ecx, OSXSAVE)) return 0;
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return has(low, wanted);
}

/* __builtin_cpu_supports is not used, because it always returns 0 in a library that Zig 0.17 has compiled. */
int64_t OF_VARIANT(here, float32_avx2)(void) { return has_fma_and_halves() && saves(YMM) && has(ask(7, 0).ebx, AVX2); }

int64_t OF_VARIANT(here, float32_avx512)(void) {
    return has_fma_and_halves() && saves(ZMM) && has(ask(7, 0).ebx, AVX512F | AVX512DQ | AVX512BW | AVX512VL);
}

int64_t OF_VARIANT(here, bfloat16_avx512)(void) {
    return OF_VARIANT(here, float32_avx512)() && has(ask(7, 1).eax, AVX512_BF16);
}
#elif defined(__aarch64__)
int64_t OF_VARIANT(here, float32_neon)(void) { return 1; }
#endif
