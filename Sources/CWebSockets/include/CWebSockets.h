// libwebsockets and libuv, with functions for what Swift cannot call: macros, a struct with too many members,
// and the event library plugin, which must stay loaded.
#pragma once
#include <libwebsockets.h>
#include <uv.h>

/// What the server asks of a libwebsockets context.
struct cws_settings {
    /// The loop to run on; the caller runs it, on one thread.
    uv_loop_t *loop;
    lws_callback_function *callback;
    /// Room for two, of which the second one marks the end. The caller's, who keeps it as long as the context.
    struct lws_protocols *protocols;
    /// Comes back from `lws_context_user`.
    void *user;
    /// PEM files; null for plain text.
    const char *certificate_path;
    const char *key_path;
    /// Comma-separated protocol names for TLS; not copied.
    const char *alpn;
    /// Bytes of request line and headers kept for each request.
    unsigned int header_bytes;
    /// Seconds for a request's headers to arrive.
    unsigned int header_seconds;
    /// Seconds an idle connection stays open.
    unsigned int idle_seconds;
};

/// Loads the libuv plugin for good.
///
/// libwebsockets unloads it with the last context while libuv may still have to call into it.
/// Returns null, or what went wrong, to be read before the next call.
const char *cws_load_event_plugin(void);

/// Returns null when libwebsockets cannot start at all, and a null host when it does not like the TLS files.
struct lws_context *cws_create(const struct cws_settings *settings, struct lws_vhost **host);

/// `accept4` with the flags for a socket that neither blocks nor is inherited.
int cws_accept(int listener, struct sockaddr *address, socklen_t *length);

/// Hands an accepted, non-blocking socket to libwebsockets, which closes it from then on, even on failure (null).
struct lws *cws_adopt(struct lws_vhost *host, int socket, int is_tls);

/// Bytes that must be free before every buffer given to `lws_write`.
int cws_prefix(void);

/// Closes from outside its callbacks, without ceremony.
void cws_kill(struct lws *wsi);

/// Says goodbye on a WebSocket and closes it, from the callback that says it is writeable.
///
/// To return nonzero there would close it without a close frame.
void cws_close_socket(struct lws *wsi, uint16_t code, const uint8_t *reason, size_t length);

/// Sends libwebsockets' own complaints to `sink`; none are wanted when it is null.
void cws_set_log(void (*sink)(int level, const char *line));

/// A certificate with those that it depends on, and its key.
struct cws_certificate;

/// Reads both out of PEM files.
///
/// Returns null when they cannot be read, do not belong together or the key wants a pass phrase, with the reason in
/// `problem`.
struct cws_certificate *cws_certificate_read(
    const char *certificate_path, const char *key_path, char *problem, size_t room);
void cws_certificate_free(struct cws_certificate *certificate);

/// Seconds since 1970; 0 for what cannot be told.
int64_t cws_certificate_not_before(const struct cws_certificate *certificate);
/// The earliest of the whole chain.
int64_t cws_certificate_not_after(const struct cws_certificate *certificate);
/// Whether the file holds none of those that it depends on.
int cws_certificate_is_alone(const struct cws_certificate *certificate);
/// Whether nobody but itself vouches for it.
int cws_certificate_is_self_issued(const struct cws_certificate *certificate);
/// Host names and addresses that it is good for, each with a line feed behind; what finds no room is left out.
/// Returns the number of bytes.
size_t cws_certificate_names(const struct cws_certificate *certificate, char *names, size_t room);

/// Has each handshake from now on present what `*certificate` points to at its beginning, while that is not null.
///
/// `tls_context` is an `SSL_CTX`; `certificate` must stay as long, and belongs to the thread of the handshakes.
void cws_present(void *tls_context, struct cws_certificate **certificate);

/// A context for WebSockets to others, which its caller serves by `lws_service` on one thread.
///
/// `protocols` has room for two, of which the second one marks the end; the caller keeps it as long as the context.
/// Returns null when libwebsockets cannot start.
struct lws_context *cws_client_create(
    lws_callback_function *callback, struct lws_protocols *protocols, void *user);

/// Begins to connect, on the thread that serves the context; the callback is told what comes of it, by `number`.
///
/// `authority` is the host with the port, as the `Host` header has it. Returns 0 when nothing will be told any more.
int cws_client_connect(
    struct lws_context *context, uint64_t number, const char *host, const char *authority, int port,
    const char *path, int is_tls);

/// As it was given; 0 for what is no such connection.
uint64_t cws_client_number(struct lws *wsi);

/// Whether what the callback was given ends a message.
int cws_client_is_end(struct lws *wsi);

/// Says with what a WebSocket closes: the callback that says it is writeable returns nonzero then.
void cws_client_close_reason(struct lws *wsi, uint16_t code);
