#include "fetcher.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

// A request, under way or to be used again: an easy handle costs more than most answers.
struct fetch {
    CURL *easy;
    struct curl_slist *headers;
    uint64_t token;
    uint8_t *body;
    size_t count, capacity, limit;
    int keeps, is_long;
    char error[CURL_ERROR_SIZE];
    struct pool *pool;
    struct fetch *next, *previous;
};

// Some clients' connections: libcurl looks at all that it has, one by one, for each request.
struct pool {
    CURLM *multi;
    ccurl_fetcher *fetcher;
    // When libcurl wants to be called, in milliseconds of the monotonic clock; -1 for never.
    int64_t due;
};

struct ccurl_fetcher {
    struct pool *pools;
    uint32_t count;
    // The pool that may have requests that ended.
    uint32_t current;
    int poll;
    struct fetch *active, *idle;
};

enum { event_limit = 256, pool_size = 128 };

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

// MARK: What libcurl calls

// Its sockets are watched by epoll: libcurl's own `poll` looks at each of them in turn.
static int watch(CURL *easy, curl_socket_t socket, int what, void *context, void *is_known) {
    struct pool *pool = context;
    const int poll = pool->fetcher->poll;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(poll, EPOLL_CTL_DEL, socket, NULL);
        return 0;
    }
    const uint64_t place = (uint64_t)(pool - pool->fetcher->pools);
    struct epoll_event event = {.data.u64 = place << 32 | (uint32_t)socket};
    if (what & CURL_POLL_IN) event.events |= EPOLLIN;
    if (what & CURL_POLL_OUT) event.events |= EPOLLOUT;
    if (is_known) return epoll_ctl(poll, EPOLL_CTL_MOD, socket, &event);
    curl_multi_assign(pool->multi, socket, pool);
    return epoll_ctl(poll, EPOLL_CTL_ADD, socket, &event);
}

static int set_timer(CURLM *multi, long milliseconds, void *context) {
    struct pool *pool = context;
    (void)multi;
    pool->due = milliseconds < 0 ? -1 : now() + milliseconds;
    return 0;
}

static size_t take(char *bytes, size_t size, size_t count, void *context) {
    struct fetch *fetch = context;
    size_t length = size * count;
    if (length > fetch->limit - fetch->count) {
        fetch->is_long = 1;
        return 0;
    }
    if (fetch->keeps) {
        size_t wanted = fetch->count + length;
        if (wanted > fetch->capacity) {
            size_t capacity = fetch->capacity < 16 << 10 ? 16 << 10 : fetch->capacity * 2;
            if (capacity < wanted) capacity = wanted;
            uint8_t *larger = realloc(fetch->body, capacity);
            if (!larger) return 0;
            fetch->body = larger;
            fetch->capacity = capacity;
        }
        memcpy(fetch->body + fetch->count, bytes, length);
    }
    fetch->count += length;
    return length;
}

// MARK: Requests

static void free_fetch(struct fetch *fetch) {
    curl_easy_cleanup(fetch->easy);
    curl_slist_free_all(fetch->headers);
    free(fetch->body);
    free(fetch);
}

static void push(struct fetch **list, struct fetch *fetch) {
    fetch->previous = NULL;
    fetch->next = *list;
    if (*list) (*list)->previous = fetch;
    *list = fetch;
}

static void unlink_fetch(struct fetch **list, struct fetch *fetch) {
    if (fetch->previous) fetch->previous->next = fetch->next;
    else *list = fetch->next;
    if (fetch->next) fetch->next->previous = fetch->previous;
}

static struct fetch *make_fetch(void) {
    struct fetch *fetch = calloc(1, sizeof *fetch);
    if (!fetch) return NULL;
    fetch->easy = curl_easy_init();
    CURL *easy = fetch->easy;
    int failures = easy == NULL;
    if (easy) {
        // No signals, as other threads live here; names are resolved on a thread of libcurl's.
        failures += curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) != CURLE_OK;
        failures += curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") != CURLE_OK;
        failures += curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L) != CURLE_OK;
        failures += curl_easy_setopt(easy, CURLOPT_USERAGENT, "sfu-bench") != CURLE_OK;
        failures += curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take) != CURLE_OK;
        failures += curl_easy_setopt(easy, CURLOPT_WRITEDATA, fetch) != CURLE_OK;
        failures += curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, fetch->error) != CURLE_OK;
        failures += curl_easy_setopt(easy, CURLOPT_PRIVATE, fetch) != CURLE_OK;
    }
    if (failures == 0) return fetch;
    if (easy) curl_easy_cleanup(easy);
    free(fetch);
    return NULL;
}

static int open_pool(struct pool *pool, ccurl_fetcher *fetcher, long connections) {
    *pool = (struct pool){.multi = curl_multi_init(), .fetcher = fetcher, .due = -1};
    if (!pool->multi) return -1;
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETFUNCTION, watch);
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETDATA, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERDATA, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_MAXCONNECTS, connections);
    curl_multi_setopt(pool->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, connections);
    return 0;
}

static void free_fetcher(ccurl_fetcher *fetcher) {
    for (uint32_t i = 0; fetcher->pools && i < fetcher->count; i++) curl_multi_cleanup(fetcher->pools[i].multi);
    if (fetcher->poll >= 0) close(fetcher->poll);
    free(fetcher->pools);
    free(fetcher);
    curl_global_cleanup();
}

ccurl_fetcher *ccurl_fetcher_open(long connections) {
    if (connections < 1 || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return NULL;
    ccurl_fetcher *fetcher = calloc(1, sizeof *fetcher);
    if (!fetcher) {
        curl_global_cleanup();
        return NULL;
    }
    const uint32_t count = (uint32_t)((connections + pool_size - 1) / pool_size);
    fetcher->poll = epoll_create1(EPOLL_CLOEXEC);
    fetcher->pools = calloc(count, sizeof *fetcher->pools);
    while (fetcher->poll >= 0 && fetcher->pools && fetcher->count < count) {
        const long share = (connections + count - 1) / count;
        if (open_pool(&fetcher->pools[fetcher->count], fetcher, share) != 0) break;
        fetcher->count++;
    }
    if (fetcher->count == count) return fetcher;
    free_fetcher(fetcher);
    return NULL;
}

void ccurl_fetcher_close(ccurl_fetcher *fetcher) {
    while (fetcher->active) {
        struct fetch *fetch = fetcher->active;
        unlink_fetch(&fetcher->active, fetch);
        curl_multi_remove_handle(fetch->pool->multi, fetch->easy);
        free_fetch(fetch);
    }
    while (fetcher->idle) {
        struct fetch *fetch = fetcher->idle;
        unlink_fetch(&fetcher->idle, fetch);
        free_fetch(fetch);
    }
    free_fetcher(fetcher);
}

int ccurl_fetcher_get(
    ccurl_fetcher *fetcher, uint64_t token, const char *url, const char *header, long timeout, size_t limit, int keeps) {
    struct fetch *fetch = fetcher->idle;
    if (fetch) unlink_fetch(&fetcher->idle, fetch);
    else fetch = make_fetch();
    if (!fetch) return -1;
    fetch->token = token;
    fetch->pool = &fetcher->pools[(token >> 32) % fetcher->count];
    fetch->count = 0;
    fetch->limit = limit;
    fetch->keeps = keeps;
    fetch->is_long = 0;
    fetch->error[0] = 0;
    curl_slist_free_all(fetch->headers);
    fetch->headers = header ? curl_slist_append(NULL, header) : NULL;
    if ((header && !fetch->headers) || curl_easy_setopt(fetch->easy, CURLOPT_URL, url) != CURLE_OK
        || curl_easy_setopt(fetch->easy, CURLOPT_HTTPHEADER, fetch->headers) != CURLE_OK
        || curl_easy_setopt(fetch->easy, CURLOPT_TIMEOUT_MS, timeout) != CURLE_OK
        || curl_multi_add_handle(fetch->pool->multi, fetch->easy) != CURLM_OK) {
        free_fetch(fetch);
        return -1;
    }
    push(&fetcher->active, fetch);
    return 0;
}

void ccurl_fetcher_wait(ccurl_fetcher *fetcher, int milliseconds) {
    struct epoll_event events[event_limit];
    int running = 0;
    const int64_t began = now();
    for (uint32_t i = 0; i < fetcher->count; i++) {
        if (fetcher->pools[i].due < 0) continue;
        const int64_t left = fetcher->pools[i].due - began;
        if (left < milliseconds) milliseconds = left < 0 ? 0 : (int)left;
    }
    int count = epoll_wait(fetcher->poll, events, event_limit, milliseconds);
    for (int i = 0; i < count; i++) {
        int what = 0;
        if (events[i].events & EPOLLIN) what |= CURL_CSELECT_IN;
        if (events[i].events & EPOLLOUT) what |= CURL_CSELECT_OUT;
        if (events[i].events & (EPOLLERR | EPOLLHUP)) what |= CURL_CSELECT_ERR;
        const struct pool *pool = &fetcher->pools[events[i].data.u64 >> 32];
        curl_multi_socket_action(pool->multi, (curl_socket_t)(uint32_t)events[i].data.u64, what, &running);
    }
    const int64_t ended = now();
    for (uint32_t i = 0; i < fetcher->count; i++) {
        struct pool *pool = &fetcher->pools[i];
        if (pool->due < 0 || pool->due > ended) continue;
        pool->due = -1;
        curl_multi_socket_action(pool->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    fetcher->current = 0;
}

int ccurl_fetcher_next(ccurl_fetcher *fetcher, struct ccurl_fetched *fetched) {
    int left = 0;
    while (fetcher->current < fetcher->count) {
        CURLMsg *message = curl_multi_info_read(fetcher->pools[fetcher->current].multi, &left);
        if (!message) {
            fetcher->current++;
            continue;
        }
        if (message->msg != CURLMSG_DONE) continue;
        const CURLcode result = message->data.result;
        struct fetch *fetch = NULL;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&fetch);
        if (!fetch) continue;
        *fetched = (struct ccurl_fetched){.token = fetch->token, .count = fetch->count};
        if (result == CURLE_OK) {
            curl_off_t retry_after = 0;
            curl_easy_getinfo(fetch->easy, CURLINFO_RESPONSE_CODE, &fetched->status);
            curl_easy_getinfo(fetch->easy, CURLINFO_RETRY_AFTER, &retry_after);
            fetched->retry_after = retry_after;
            if (fetch->keeps) fetched->body = fetch->body;
        } else if (fetch->is_long) {
            snprintf(fetched->error, sizeof fetched->error, "an answer of more than %zu bytes", fetch->limit);
        } else {
            const char *text = fetch->error[0] ? fetch->error : curl_easy_strerror(result);
            snprintf(fetched->error, sizeof fetched->error, "%.127s", text);
        }
        curl_multi_remove_handle(fetch->pool->multi, fetch->easy);
        unlink_fetch(&fetcher->active, fetch);
        push(&fetcher->idle, fetch);
        return 1;
    }
    return 0;
}
