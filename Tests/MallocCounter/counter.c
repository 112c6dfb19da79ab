#include "MallocCounter.h"

#include <errno.h>
#include <malloc.h>
#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifdef SANITIZED
int malloc_counter_is_on(void) {
    return 0;
}

uint64_t malloc_counter_allocations(void) {
    return 0;
}

int64_t malloc_counter_live_bytes(void) {
    return 0;
}
#else
// The names glibc gives its own allocator.
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static _Thread_local uint64_t allocations;
static _Thread_local int64_t live_bytes;

int malloc_counter_is_on(void) {
    return 1;
}

uint64_t malloc_counter_allocations(void) {
    return allocations;
}

int64_t malloc_counter_live_bytes(void) {
    return live_bytes;
}

static int64_t size_of(void *block) {
    return block ? (int64_t)malloc_usable_size(block) : 0;
}

static void *counted(void *block) {
    allocations++;
    live_bytes += size_of(block);
    return block;
}

void *malloc(size_t size) {
    return counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size) {
    return counted(__libc_calloc(count, size));
}

void *realloc(void *block, size_t size) {
    const int64_t before = size_of(block);
    void *moved = __libc_realloc(block, size);
    // Where it fails, the old block stays; with size 0 it is freed.
    if (moved || size == 0) live_bytes -= before;
    return counted(moved);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return counted(__libc_memalign(alignment, size));
}

void *memalign(size_t alignment, size_t size) {
    return counted(__libc_memalign(alignment, size));
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    *block = counted(__libc_memalign(alignment, size));
    return *block ? 0 : ENOMEM;
}

void free(void *block) {
    live_bytes -= size_of(block);
    __libc_free(block);
}
#endif
