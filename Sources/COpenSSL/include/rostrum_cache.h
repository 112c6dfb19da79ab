// What Swift has no word for: a stretch of memory will be read soon.
#pragma once
#include <stdint.h>

enum { ROSTRUM_CACHE_LINE = 64 };

/// Begins to load cache lines. Reads nothing: an address that is out of date does no harm.
static inline void rostrum_cache_prefetch(uintptr_t address, uint32_t lines) {
    for (uint32_t line = 0; line < lines; line++) {
        __builtin_prefetch((const void *)(address + (uintptr_t)line * ROSTRUM_CACHE_LINE), 0, 3);
    }
}
