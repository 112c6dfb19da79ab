#define OPENSSL_SUPPRESS_DEPRECATED
#include "SimulatedLibraries.h"

#include <openssl/rand.h>
#include <pthread.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static _Thread_local simulated_libraries *current;

// MARK: The clock

#pragma clang diagnostic ignored "-Wnullability-completeness"

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    if (current) {
        time->tv_sec = current->microseconds / 1000000;
        time->tv_usec = current->microseconds % 1000000;
        return 0;
    }
    struct timespec now;
    const int outcome = clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return outcome;
}

// MARK: Random numbers

static uint64_t next(uint64_t *state) {
    uint64_t mixed = *state += 0x9E3779B97F4A7C15;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
    return mixed ^ (mixed >> 31);
}

static int fill(unsigned char *bytes, int count) {
    if (!current) return RAND_OpenSSL()->bytes(bytes, count);
    for (int done = 0; done < count; done += 8) {
        const uint64_t word = next(&current->random);
        memcpy(bytes + done, &word, count - done < 8 ? count - done : 8);
    }
    return 1;
}

static void set_method(void) {
    static RAND_METHOD method;
    method = *RAND_OpenSSL();
    method.bytes = fill;
    method.pseudorand = fill;
    RAND_set_rand_method(&method);
}

simulated_libraries *simulated_libraries_enter(simulated_libraries *libraries) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_method);
    simulated_libraries *before = current;
    current = libraries;
    return before;
}

// MARK: Digests

uint64_t simulated_digest(uint64_t digest, const void *bytes, size_t count) {
    const unsigned char *rest = bytes;
    uint64_t word = count;
    for (;;) {
        digest = (digest ^ word) * 0x9FB21C651E98DF25;
        digest ^= digest >> 32;
        if (count == 0) return digest;
        const size_t length = count < sizeof word ? count : sizeof word;
        word = 0;
        memcpy(&word, rest, length);
        rest += length;
        count -= length;
    }
}
