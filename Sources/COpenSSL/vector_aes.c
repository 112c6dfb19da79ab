#if defined(__x86_64__)
#include "vector_aes.h"
#include <cpuid.h>
#include <stdatomic.h>

static int look(void) {
    unsigned a, b, c, d;
    // The compiler's own check also asks whether the system saves the registers.
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw")
        || !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq")
        || !__builtin_cpu_supports("aes") || !__builtin_cpu_supports("pclmul"))
        return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    const unsigned vaes = 1u << 9, vpclmulqdq = 1u << 10;
    return (c & vaes) && (c & vpclmulqdq);
}

int vector_aes_is_usable(void) {
    // Asked for every key, and a virtual machine takes microseconds to answer.
    enum { unknown, no, yes };
    static atomic_int answer = unknown;
    int known = atomic_load_explicit(&answer, memory_order_relaxed);
    if (known == unknown) {
        known = look() ? yes : no;
        atomic_store_explicit(&answer, known, memory_order_relaxed);
    }
    return known == yes;
}
#endif
