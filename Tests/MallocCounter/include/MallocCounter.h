/// Counts heap allocations, thread by thread, in the test program that links it.
///
/// Takes the place of `malloc` and its kin and hands on to glibc. Not under a sanitizer, which does the same.
#pragma once
#include <stdint.h>

/// Whether allocations are counted at all.
int malloc_counter_is_on(void);
/// Allocations by the calling thread since it began.
uint64_t malloc_counter_allocations(void);
/// Bytes the calling thread allocated and did not free, since it began; less than 0 if it freed what others made.
int64_t malloc_counter_live_bytes(void);
