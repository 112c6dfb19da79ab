#include "CSRT.h"
#include <errno.h>
#include <srt/srt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

struct listener {
    csrt_admit *admit;
    void *context;
};

/// Translates for `csrt_admit`.
static int admit(void *opaque, SRTSOCKET socket, int version, const struct sockaddr *peer, const char *stream_id) {
    struct listener *listener = opaque;
    struct sockaddr_in6 storage = {0};
    (void)version;
    memcpy(&storage, peer, peer->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof storage);
    int code = listener->admit(listener->context, socket, clinux_load_address(&storage), stream_id);
    if (code == 0) return 0;
    srt_setrejectreason(socket, code);
    return -1;
}

static int set(SRTSOCKET socket, SRT_SOCKOPT option, int value) {
    return srt_setsockflag(socket, option, &value, sizeof value);
}

static int set_bool(SRTSOCKET socket, SRT_SOCKOPT option, bool value) {
    return srt_setsockflag(socket, option, &value, sizeof value);
}

static int configure(SRTSOCKET socket, struct csrt_options options) {
    int is_ready = set_bool(socket, SRTO_RCVSYN, false) == 0 && set(socket, SRTO_TRANSTYPE, SRTT_LIVE) == 0 &&
                   set(socket, SRTO_RCVLATENCY, options.latency) == 0 &&
                   // Since 1.3.0 callers say what they want.
                   set(socket, SRTO_MINVERSION, 0x010300) == 0;
    if (is_ready && options.passphrase)
        is_ready = set_bool(socket, SRTO_ENFORCEDENCRYPTION, true) == 0 &&
                   srt_setsockflag(socket, SRTO_PASSPHRASE, options.passphrase, (int)strlen(options.passphrase)) == 0;
    return is_ready;
}

/// The errno behind the library's last error.
static int last_error(void) {
    int code = 0;
    srt_getlasterror(&code);
    return code > 0 ? -code : -EIO;
}

int csrt_listen(struct clinux_address address, struct csrt_options options, csrt_admit *callback, void *context) {
    if (srt_startup() < 0) return -ENOMEM;
    // What strangers do wrong is nothing for standard error.
    srt_setloglevel(LOG_CRIT);
    SRTSOCKET socket = srt_create_socket();
    if (socket == SRT_INVALID_SOCK) return last_error();
    int error = -EINVAL;
    if (!configure(socket, options)) goto failed;
    int is_ipv4 = address.high == 0 && address.low >> 32 == 0xFFFF;
    struct sockaddr_in6 storage = {0};
    if (!is_ipv4 && set(socket, SRTO_IPV6ONLY, 0) < 0) goto failed;
    socklen_t length = clinux_store_address(&storage, address, is_ipv4);
    error = 0;
    // The library shares ports between its own sockets; here each port is one listener's.
    if (set_bool(socket, SRTO_REUSEADDR, false) < 0) error = last_error();
    if (error == 0 && srt_bind(socket, (struct sockaddr *)&storage, (int)length) < 0) error = last_error();
    if (error < 0) goto failed;
    struct listener *listener = malloc(sizeof *listener);
    if (!listener) {
        error = -ENOMEM;
        goto failed;
    }
    // Kept for ever: the library may still be calling when the port is closed.
    *listener = (struct listener){callback, context};
    if (srt_listen_callback(socket, admit, listener) == 0 && srt_listen(socket, options.backlog) == 0) return socket;
    error = last_error();
failed:
    srt_close(socket);
    return error;
}

int csrt_local_address(int socket, struct clinux_address *address) {
    struct sockaddr_in6 storage;
    int length = sizeof storage;
    if (srt_getsockname(socket, (struct sockaddr *)&storage, &length) < 0) return last_error();
    *address = clinux_load_address(&storage);
    return 0;
}

int csrt_accept(int listener) {
    struct sockaddr_in6 storage;
    int length = sizeof storage;
    return srt_accept(listener, (struct sockaddr *)&storage, &length);
}

int csrt_receive(int socket, void *bytes, int count) {
    int length = srt_recvmsg(socket, bytes, count);
    if (length >= 0) return length;
    return srt_getlasterror(NULL) == SRT_EASYNCRCV ? 0 : -1;
}

void csrt_close(int socket) { srt_close(socket); }

int csrt_statistics(int socket, struct csrt_statistics *statistics) {
    SRT_TRACEBSTATS all;
    // Clears what counts from the last call, which `retransmitted` is: the caller adds up.
    if (srt_bistats(socket, &all, 1, 1) < 0) return -1;
    statistics->round_trip_milliseconds = all.msRTT;
    statistics->received = all.pktRecvTotal;
    statistics->lost = all.pktRcvLossTotal;
    statistics->retransmitted += all.pktRcvRetrans;
    statistics->dropped = all.pktRcvDropTotal;
    statistics->latency = all.msRcvTsbPdDelay;
    return 0;
}

int csrt_call(struct clinux_address address, struct csrt_options options, const char *stream_id) {
    if (srt_startup() < 0) return -ENOMEM;
    srt_setloglevel(LOG_CRIT);
    SRTSOCKET socket = srt_create_socket();
    if (socket == SRT_INVALID_SOCK) return last_error();
    int is_ipv4 = address.high == 0 && address.low >> 32 == 0xFFFF;
    struct sockaddr_in6 storage = {0};
    socklen_t length = clinux_store_address(&storage, address, is_ipv4);
    int is_ready = configure(socket, options) == 1 && set_bool(socket, SRTO_SNDSYN, false) == 0 &&
                   set(socket, SRTO_PEERLATENCY, options.latency) == 0 &&
                   srt_setsockflag(socket, SRTO_STREAMID, stream_id, (int)strlen(stream_id)) == 0;
    if (is_ready && srt_connect(socket, (struct sockaddr *)&storage, (int)length) >= 0) return socket;
    int error = is_ready ? last_error() : -EINVAL;
    srt_close(socket);
    return error;
}

int csrt_connected(int socket) {
    SRT_SOCKSTATUS status = srt_getsockstate(socket);
    if (status == SRTS_CONNECTED) return 1;
    return status == SRTS_INIT || status == SRTS_OPENED || status == SRTS_CONNECTING ? 0 : -1;
}

const char *csrt_reason(int socket) {
    int reason = srt_getrejectreason(socket);
    switch (reason) {
    case SRT_REJ_UNKNOWN: return "the connection is gone";
    // As HTTP has them; the library has no words for these.
    case 1400: return "the server does not understand the stream ID";
    case 1401: return "the server does not know the key";
    case 1402: return "the server has too many callers";
    case 1403: return "the server does not permit it";
    case 1404: return "the server knows no such stream";
    case 1405: return "the server takes nobody who publishes";
    case 1409: return "somebody publishes already";
    default: return srt_rejectreason_str(reason);
    }
}

int csrt_send(int socket, const void *bytes, int count) {
    if (srt_sendmsg(socket, bytes, count, -1, 1) >= 0) return 0;
    return srt_getlasterror(NULL) == SRT_EASYNCSND ? 1 : -1;
}

int csrt_sending_statistics(int socket, struct csrt_sending *sending) {
    SRT_TRACEBSTATS all;
    if (srt_bistats(socket, &all, 0, 1) < 0) return -1;
    *sending = (struct csrt_sending){
        .sent = all.pktSentUniqueTotal,
        .retransmitted = all.pktRetransTotal,
        .lost = all.pktSndLossTotal,
        .dropped = all.pktSndDropTotal,
        .bytes = (int64_t)all.byteSentTotal,
        .waiting = all.pktSndBuf,
        .round_trip_milliseconds = all.msRTT,
    };
    return 0;
}

int csrt_poll_open(void) { return srt_epoll_create(); }

int csrt_poll_watch(int poll, int socket) {
    int events = SRT_EPOLL_IN | SRT_EPOLL_ERR;
    return srt_epoll_add_usock(poll, socket, &events);
}

int csrt_poll_watch_descriptor(int poll, int descriptor) {
    int events = SRT_EPOLL_IN;
    return srt_epoll_add_ssock(poll, descriptor, &events);
}

int csrt_poll_wait(int poll, int *sockets, int capacity, int milliseconds) {
    int count = capacity, descriptor = 0, descriptors = 1;
    int ready = srt_epoll_wait(poll, sockets, &count, NULL, NULL, milliseconds, &descriptor, &descriptors, NULL, NULL);
    return ready < 0 ? 0 : count;
}

void csrt_poll_close(int poll) { srt_epoll_release(poll); }
