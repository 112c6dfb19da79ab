// accept4 and RTLD_NODELETE.
#define _GNU_SOURCE
#include "CWebSockets.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *cws_load_event_plugin(void) {
    static void *plugin;
    if (!plugin)
        plugin = dlopen(LWS_INSTALL_LIBDIR "/libwebsockets-evlib_uv.so", RTLD_NOW | RTLD_NODELETE);
    return plugin ? NULL : dlerror();
}

struct lws_context *cws_create(const struct cws_settings *settings, struct lws_vhost **host) {
    // Freed by the context, see below.
    struct lws_protocols *protocols = calloc(2, sizeof(*protocols));
    if (!protocols)
        return NULL;
    protocols[0].name = "rostrum";
    protocols[0].callback = settings->callback;
    // Held by every WebSocket; longer messages arrive in pieces.
    protocols[0].rx_buffer_size = 2048;
    // The most bytes lws_write hands to the socket at once.
    protocols[0].tx_packet_size = 65536;

    void *loops[1] = {settings->loop};
    struct lws_context_creation_info info;
    memset(&info, 0, sizeof(info));
    // The gateway listens and accepts by itself.
    info.port = CONTEXT_PORT_NO_LISTEN_SERVER;
    info.protocols = protocols;
    info.user = settings->user;
    info.foreign_loops = loops;
    info.pcontext = settings->context;
    info.external_baggage_free_on_destroy = protocols;
    info.gid = (gid_t)-1;
    info.uid = (uid_t)-1;
    info.server_string = "rostrum";
    info.vhost_name = "rostrum";
    info.max_http_header_data2 = settings->header_bytes;
    info.timeout_secs = settings->header_seconds;
    info.timeout_secs_ah_idle = settings->header_seconds;
    info.keepalive_timeout = (int)settings->idle_seconds;
    info.retry_and_idle_policy = settings->heartbeat;
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

static void find_event_descriptor(uv_handle_t *handle, void *found) {
    struct stat status;
    uv_os_fd_t descriptor;
    if (uv_handle_get_type(handle) != UV_POLL || uv_fileno(handle, &descriptor))
        return;
    // The context's eventfd is the only thing polled that is no socket.
    if (fstat(descriptor, &status) == 0 && !S_ISSOCK(status.st_mode))
        *(int *)found = descriptor;
}

void cws_begin_destroy(struct lws_context *context, uv_loop_t *loop) {
    int descriptor = -1;
    uv_walk(loop, find_event_descriptor, &descriptor);
    lws_context_destroy(context);
    if (!context || descriptor < 0)
        return;
    // libwebsockets 4.1 has closed its eventfd and will do so again when libuv lets go of it. By then the number
    // could belong to a socket of another thread, so something worthless takes it.
    int placeholder = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (placeholder < 0 || placeholder == descriptor)
        return;
    int taken = fcntl(placeholder, F_DUPFD_CLOEXEC, descriptor);
    if (taken >= 0 && taken != descriptor)
        close(taken);
    close(placeholder);
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

void cws_kill(struct lws *wsi) { lws_set_timeout(wsi, PENDING_TIMEOUT_USER_REASON_BASE, LWS_TO_KILL_ASYNC); }

int cws_is_stream(struct lws *wsi) { return lws_get_network_wsi(wsi) != wsi; }

void cws_set_log(void (*sink)(int level, const char *line)) { lws_set_log_level(sink ? LLL_ERR | LLL_WARN : 0, sink); }
