// What webhooks need of libcurl: many POST requests at once on one thread. libcurl's options are variadic macros, which
// Swift cannot call.
#pragma once
#include <stdint.h>
#include "fetcher.h"

typedef struct ccurl_client ccurl_client;

struct ccurl_limits {
    /// Milliseconds for the connection, and for everything.
    long connect_timeout, timeout;
};

struct ccurl_answer {
    uint64_t token;
    /// The status of the response; 0 if there was none.
    long status;
    /// Seconds of a Retry-After header; 0 if there was none.
    int64_t retry_after;
    /// What libcurl says about a request without response; empty otherwise.
    char error[128];
};

/// Returns null when there is no memory. All functions but `ccurl_wake` belong to one thread.
ccurl_client *ccurl_open(void);
/// Abandons requests under way.
void ccurl_close(ccurl_client *client);
/// Begins a request; copies what it is given. Redirects are not followed, and what is answered is not kept.
/// @param headers lines `Name: value`.
/// @return 0, or -1 when the request cannot be made.
int ccurl_post(
    ccurl_client *client, uint64_t token, const char *url, const char *const *headers, int header_count,
    const void *body, int64_t length, struct ccurl_limits limits);
/// Waits until something ends or `ccurl_wake` is called, at most `milliseconds`.
/// @return how many answers were written, at most `capacity`.
int ccurl_wait(ccurl_client *client, int milliseconds, struct ccurl_answer *answers, int capacity);
/// From any thread.
void ccurl_wake(ccurl_client *client);
/// Of libcurl, such as 7.88.1; lasts.
const char *ccurl_version(void);
