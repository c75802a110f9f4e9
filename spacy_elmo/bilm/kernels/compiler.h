/* What a compiler has to be told: to build a function for several processors, and which loops are vectors. */

#if defined(VARIANTS)
/* `make sanitize` builds one variant. */
#elif defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
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

/* No turn of the loop depends on one before. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#endif

/* A sum or a maximum, lane by lane. Needs -fopenmp-simd, which has nothing to do with threads. */
#define PRAGMA(text) _Pragma(#text)
#define BY_LANES(operation, name) PRAGMA(omp simd reduction(operation : name))
