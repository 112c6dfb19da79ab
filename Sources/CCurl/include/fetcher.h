// What a load test needs of libcurl: GET requests of many clients at once on one thread, over connections that are kept.
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef struct ccurl_fetcher ccurl_fetcher;

struct ccurl_fetched {
    uint64_t token;
    /// The status of the response; 0 if there was none.
    long status;
    /// Seconds of a Retry-After header; 0 if there was none.
    int64_t retry_after;
    /// Bytes that came.
    size_t count;
    /// Those bytes, where they were to be kept; good until the next call of another function.
    const uint8_t *body;
    /// What libcurl says about a request without response; empty otherwise.
    char error[128];
};

/// All functions belong to one thread.
/// @param connections so many are open at a time, and kept; requests beyond wait for one of them.
/// @return null when there is no memory, or no descriptor left.
ccurl_fetcher *ccurl_fetcher_open(long connections);
/// Abandons requests under way.
void ccurl_fetcher_close(ccurl_fetcher *fetcher);
/// Begins a request; copies what it is given. Redirects are not followed.
/// @param token of the request; its upper half is the client's, whose requests share connections with some others'.
/// @param header one line `Name: value`, or null.
/// @param timeout milliseconds for all of it.
/// @param limit of bytes: a longer response fails.
/// @param keeps whether its bytes are handed out, or only counted.
/// @return 0, or -1 when the request cannot be made.
int ccurl_fetcher_get(
    ccurl_fetcher *fetcher, uint64_t token, const char *url, const char *header, long timeout, size_t limit, int keeps);
/// Waits until something can be sent or read, at most `milliseconds`, and does it.
void ccurl_fetcher_wait(ccurl_fetcher *fetcher, int milliseconds);
/// Takes one request that has ended.
/// @return 0 where there is none.
int ccurl_fetcher_next(ccurl_fetcher *fetcher, struct ccurl_fetched *fetched);
