#include "CCurl.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// One request under way.
struct request {
    uint64_t token;
    CURL *easy;
    struct curl_slist *headers;
    char error[CURL_ERROR_SIZE];
    struct request *next;
};

struct ccurl_client {
    CURLM *multi;
    struct request *requests;
};

static size_t discard(char *bytes, size_t size, size_t count, void *context) {
    (void)bytes;
    (void)context;
    return size * count;
}

static void end(ccurl_client *client, struct request *request) {
    for (struct request **link = &client->requests; *link; link = &(*link)->next) {
        if (*link != request) continue;
        *link = request->next;
        break;
    }
    if (request->easy) {
        curl_multi_remove_handle(client->multi, request->easy);
        curl_easy_cleanup(request->easy);
    }
    curl_slist_free_all(request->headers);
    free(request);
}

ccurl_client *ccurl_open(void) {
    // Counts its calls, and is thread-safe since 7.84 where atomics are, as on Linux.
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return NULL;
    ccurl_client *client = calloc(1, sizeof *client);
    if (client) client->multi = curl_multi_init();
    if (!client || !client->multi) {
        free(client);
        curl_global_cleanup();
        return NULL;
    }
    return client;
}

void ccurl_close(ccurl_client *client) {
    while (client->requests) end(client, client->requests);
    curl_multi_cleanup(client->multi);
    free(client);
    curl_global_cleanup();
}

static int configure(
    struct request *request, const char *url, const void *body, int64_t length, struct ccurl_limits limits) {
    CURL *easy = request->easy;
    int failures = 0;
    // No signals, as other threads live here; names are resolved on a thread of libcurl's.
    failures += curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) != CURLE_OK;
    failures += curl_easy_setopt(easy, CURLOPT_URL, url) != CURLE_OK;
    failures += curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") != CURLE_OK;
    failures += curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L) != CURLE_OK;
    failures += curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)length) != CURLE_OK;
    failures += curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, length > 0 ? body : "") != CURLE_OK;
    failures += curl_easy_setopt(easy, CURLOPT_HTTPHEADER, request->headers) != CURLE_OK;
    failures += curl_easy_setopt(easy, CURLOPT_USERAGENT, "rostrum-webhooks") != CURLE_OK;
    failures += curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, discard) != CURLE_OK;
    failures += curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, limits.connect_timeout) != CURLE_OK;
    failures += curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, limits.timeout) != CURLE_OK;
    failures += curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, request->error) != CURLE_OK;
    failures += curl_easy_setopt(easy, CURLOPT_PRIVATE, request) != CURLE_OK;
    return failures == 0 ? 0 : -1;
}

int ccurl_post(
    ccurl_client *client, uint64_t token, const char *url, const char *const *headers, int header_count,
    const void *body, int64_t length, struct ccurl_limits limits) {
    struct request *request = calloc(1, sizeof *request);
    if (!request) return -1;
    request->token = token;
    request->next = client->requests;
    client->requests = request;
    request->easy = curl_easy_init();
    // "Expect:" removes a header that costs a round trip.
    request->headers = curl_slist_append(NULL, "Expect:");
    for (int i = 0; i < header_count && request->headers; i++) {
        struct curl_slist *longer = curl_slist_append(request->headers, headers[i]);
        if (!longer) curl_slist_free_all(request->headers);
        request->headers = longer;
    }
    if (!request->easy || !request->headers || configure(request, url, body, length, limits) != 0
        || curl_multi_add_handle(client->multi, request->easy) != CURLM_OK) {
        end(client, request);
        return -1;
    }
    return 0;
}

static struct ccurl_answer answer(const struct request *request, CURLcode result) {
    struct ccurl_answer answer = {.token = request->token};
    if (result == CURLE_OK) {
        curl_off_t retry_after = 0;
        curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &answer.status);
        curl_easy_getinfo(request->easy, CURLINFO_RETRY_AFTER, &retry_after);
        answer.retry_after = retry_after;
    } else {
        const char *text = request->error[0] ? request->error : curl_easy_strerror(result);
        snprintf(answer.error, sizeof answer.error, "%s", text);
    }
    return answer;
}

int ccurl_wait(ccurl_client *client, int milliseconds, struct ccurl_answer *answers, int capacity) {
    int running = 0, left = 0, count = 0;
    curl_multi_perform(client->multi, &running);
    CURLMsg *message;
    while (count < capacity && (message = curl_multi_info_read(client->multi, &left))) {
        if (message->msg != CURLMSG_DONE) continue;
        const CURLcode result = message->data.result;
        struct request *request = NULL;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&request);
        if (!request) continue;
        answers[count++] = answer(request, result);
        end(client, request);
    }
    if (count == 0) curl_multi_poll(client->multi, NULL, 0, milliseconds, NULL);
    return count;
}

void ccurl_wake(ccurl_client *client) {
    curl_multi_wakeup(client->multi);
}

const char *ccurl_version(void) { return curl_version_info(CURLVERSION_NOW)->version; }
