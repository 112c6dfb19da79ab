// WebSockets to others.
#include "CWebSockets.h"
#include <string.h>

/// Connections at a time; the table of a context is as long.
enum { MOST_CONNECTIONS = 256 };

struct lws_context *cws_client_create(
    lws_callback_function *callback, struct lws_protocols *protocols, void *user) {
    memset(protocols, 0, 2 * sizeof(*protocols));
    protocols[0].name = "rostrum-client";
    protocols[0].callback = callback;
    protocols[0].rx_buffer_size = 65536;
    protocols[0].tx_packet_size = 65536;

    struct lws_context_creation_info info;
    memset(&info, 0, sizeof(info));
    info.port = CONTEXT_PORT_NO_LISTEN;
    info.protocols = protocols;
    info.user = user;
    info.gid = (gid_t)-1;
    info.uid = (uid_t)-1;
    info.vhost_name = "rostrum-client";
    info.fd_limit_per_thread = MOST_CONNECTIONS;
    // Of each step of a handshake, in seconds.
    info.timeout_secs = 10;
    // Whoever speaks on the socket has heartbeats of their own.
    static const lws_retry_bo_t without_heartbeats;
    info.retry_and_idle_policy = &without_heartbeats;
    info.options = LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT | LWS_SERVER_OPTION_VALIDATE_UTF8;
    return lws_create_context(&info);
}

int cws_client_connect(
    struct lws_context *context, uint64_t number, const char *host, const char *authority, int port,
    const char *path, int is_tls) {
    struct lws_client_connect_info info;
    memset(&info, 0, sizeof(info));
    info.context = context;
    info.address = host;
    info.port = port;
    info.path = path;
    info.host = authority;
    info.ssl_connection = is_tls ? LCCSCF_USE_SSL : 0;
    info.local_protocol_name = "rostrum-client";
    info.alpn = "http/1.1";
    info.opaque_user_data = (void *)(uintptr_t)number;
    return lws_client_connect_via_info(&info) != NULL;
}

uint64_t cws_client_number(struct lws *wsi) { return (uint64_t)(uintptr_t)lws_get_opaque_user_data(wsi); }

int cws_client_is_end(struct lws *wsi) {
    return lws_is_final_fragment(wsi) && !lws_remaining_packet_payload(wsi);
}

void cws_client_close_reason(struct lws *wsi, uint16_t code) {
    lws_close_reason(wsi, (enum lws_close_status)code, NULL, 0);
}
