// accept4 and RTLD_NODELETE.
#define _GNU_SOURCE
#include "CWebSockets.h"
#include <dlfcn.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <string.h>

static void *event_plugin;
static const char *event_plugin_problem;

static void load_event_plugin(void) {
    event_plugin = dlopen(LWS_INSTALL_LIBDIR "/libwebsockets-evlib_uv.so", RTLD_NOW | RTLD_NODELETE);
    if (!event_plugin)
        event_plugin_problem = dlerror();
}

const char *cws_load_event_plugin(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_event_plugin);
    return event_plugin_problem;
}

struct lws_context *cws_create(const struct cws_settings *settings, struct lws_vhost **host) {
    struct lws_protocols *protocols = settings->protocols;
    memset(protocols, 0, 2 * sizeof(*protocols));
    protocols[0].name = "rostrum";
    protocols[0].callback = settings->callback;
    // Held by every WebSocket; longer messages arrive in pieces.
    protocols[0].rx_buffer_size = 2048;
    // The most bytes lws_write hands to the socket at once.
    protocols[0].tx_packet_size = 65536;

    void *loops[1] = {settings->loop};
    struct lws_context_creation_info info;
    memset(&info, 0, sizeof(info));
    // The server listens and accepts by itself.
    info.port = CONTEXT_PORT_NO_LISTEN_SERVER;
    info.protocols = protocols;
    info.user = settings->user;
    info.foreign_loops = loops;
    info.gid = (gid_t)-1;
    info.uid = (uid_t)-1;
    info.server_string = "rostrum";
    info.vhost_name = "rostrum";
    info.max_http_header_data2 = settings->header_bytes;
    // It holds for each piece of a body, too, and would close without a word: the server's own time-out answers before.
    info.timeout_secs = settings->header_seconds + 2;
    info.timeout_secs_ah_idle = settings->header_seconds;
    info.keepalive_timeout = (int)settings->idle_seconds;
    // Heartbeats are the server's own: each of libwebsockets' would walk through a sorted list of all of them.
    static const lws_retry_bo_t without_heartbeats;
    info.retry_and_idle_policy = &without_heartbeats;
    // Garbage instead of a request line reaches us as raw bytes, so that it gets an answer.
    info.options = LWS_SERVER_OPTION_LIBUV | LWS_SERVER_OPTION_SKIP_SERVER_CANONICAL_NAME |
                   LWS_SERVER_OPTION_VALIDATE_UTF8 | LWS_SERVER_OPTION_UV_NO_SIGSEGV_SIGFPE_SPIN |
                   LWS_SERVER_OPTION_FALLBACK_TO_APPLY_LISTEN_ACCEPT_CONFIG;
    if (settings->certificate_path) {
        info.options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
        info.ssl_cert_filepath = settings->certificate_path;
        info.ssl_private_key_filepath = settings->key_path;
        info.alpn = settings->alpn;
        info.ssl_options_set = SSL_OP_NO_SSLv3 | SSL_OP_NO_TLSv1 | SSL_OP_NO_TLSv1_1 | SSL_OP_NO_RENEGOTIATION;
    }
    // Made apart from the host: lws_create_context cleans up badly when its own host fails.
    info.options |= LWS_SERVER_OPTION_EXPLICIT_VHOSTS;
    struct lws_context *context = lws_create_context(&info);
    *host = context ? lws_create_vhost(context, &info) : NULL;
    return context;
}

int cws_accept(int listener, struct sockaddr *address, socklen_t *length) {
    return accept4(listener, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

struct lws *cws_adopt(struct lws_vhost *host, int socket, int is_tls) {
    lws_sock_file_fd_type descriptor;
    memset(&descriptor, 0, sizeof(descriptor));
    descriptor.sockfd = socket;
    int type = LWS_ADOPT_SOCKET | LWS_ADOPT_HTTP | (is_tls ? LWS_ADOPT_ALLOW_SSL : 0);
    return lws_adopt_descriptor_vhost(host, type, descriptor, NULL, NULL);
}

int cws_prefix(void) { return LWS_PRE; }

void cws_kill(struct lws *wsi) {
    struct lws_context *context = lws_get_context(wsi);
    lws_set_timeout(wsi, PENDING_TIMEOUT_USER_REASON_BASE, LWS_TO_KILL_ASYNC);
    // On libuv's loop time-outs are looked at after input, or when the earliest one known before is due.
    lws_cancel_service(context);
}

void cws_close_socket(struct lws *wsi, uint16_t code, const uint8_t *reason, size_t length) {
    lws_close_reason(wsi, (enum lws_close_status)code, (unsigned char *)reason, length);
    // With a reason set this only begins to close.
    lws_set_timeout(wsi, PENDING_TIMEOUT_USER_REASON_BASE, LWS_TO_KILL_SYNC);
}

void cws_set_log(void (*sink)(int level, const char *line)) { lws_set_log_level(sink ? LLL_ERR | LLL_WARN : 0, sink); }
