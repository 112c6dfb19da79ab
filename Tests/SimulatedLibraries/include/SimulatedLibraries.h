/// Gives C libraries a clock and random numbers of a simulation, thread by thread, in the test program that links it.
///
/// usrsctp measures round trips by `gettimeofday`, which takes the place of the C library's here; OpenSSL asks the
/// method for random numbers that is set here. A thread that is in no simulation gets what it would get otherwise.
#pragma once
#include <stddef.h>
#include <stdint.h>

/// What the libraries get on a thread that is in a simulation.
typedef struct {
    /// State of SplitMix64.
    uint64_t random;
    /// Since 1970.
    int64_t microseconds;
} simulated_libraries;

/// Puts the calling thread into a simulation; null takes it out.
///
/// - Returns: the one that it was in before.
simulated_libraries *simulated_libraries_enter(simulated_libraries *libraries);

/// Continues a digest, which is good for comparing and nothing else, with these bytes.
uint64_t simulated_digest(uint64_t digest, const void *bytes, size_t count);
