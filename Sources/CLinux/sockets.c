// Not in the header: Swift reads glibc without it, and the two views would differ.
#define _GNU_SOURCE
#include "CLinux.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

_Static_assert(sizeof(struct clinux_message) == sizeof(struct mmsghdr), "clinux_message is mmsghdr");
_Static_assert(offsetof(struct clinux_message, length) == offsetof(struct mmsghdr, msg_len), "same layout");
_Static_assert(sizeof(struct clinux_control) >= CMSG_SPACE(sizeof(int)), "room for one control message");

static int is_ipv4(struct clinux_address address) {
    return address.high == 0 && address.low >> 32 == 0xFFFF;
}

int clinux_share_port(int descriptor) {
    const int on = 1;
    return setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) < 0 ? -errno : 0;
}

int clinux_udp_open(struct clinux_address address, int joins) {
    const int ipv4 = is_ipv4(address), off = 0;
    struct sockaddr_in6 storage;
    int descriptor = socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -errno;
    // Dual stack: one IPv6 socket also serves IPv4, in mapped form.
    if (!ipv4 && setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) < 0) goto failed;
    int shared = joins ? clinux_share_port(descriptor) : 0;
    if (shared < 0) {
        errno = -shared;
        goto failed;
    }
    socklen_t length = clinux_store_address(&storage, address, ipv4);
    if (bind(descriptor, (struct sockaddr *)&storage, length) < 0) goto failed;
    return descriptor;
failed:;
    int error = errno;
    close(descriptor);
    return -error;
}

enum { unsent_in_kernel = 64 << 10, give_up_milliseconds = 30000 };

/// None of these is worth failing for.
void clinux_stream_tune(int descriptor) {
    const int on = 1, unsent = unsent_in_kernel, patience = give_up_milliseconds;
    (void)setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    // What waits in the kernel can no longer be dropped; what is under way may grow with the path.
    (void)setsockopt(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    (void)setsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience, sizeof patience);
}

static int open_stream(int ipv4) {
    const int off = 0;
    int descriptor = socket(ipv4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -errno;
    if (!ipv4 && setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) < 0) {
        int error = errno;
        close(descriptor);
        return -error;
    }
    return descriptor;
}

int clinux_tcp_listen(struct clinux_address address, int backlog) {
    const int ipv4 = is_ipv4(address), on = 1;
    struct sockaddr_in6 storage;
    int descriptor = open_stream(ipv4);
    if (descriptor < 0) return descriptor;
    // A port whose last connections linger may be bound again; one that somebody listens on may not.
    (void)setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    socklen_t length = clinux_store_address(&storage, address, ipv4);
    if (bind(descriptor, (struct sockaddr *)&storage, length) == 0 && listen(descriptor, backlog) == 0)
        return descriptor;
    int error = errno;
    close(descriptor);
    return -error;
}

int clinux_tcp_accept(int descriptor, struct clinux_address *remote, int tunes) {
    struct sockaddr_in6 storage;
    socklen_t length = sizeof storage;
    int accepted;
    do accepted = accept4(descriptor, (struct sockaddr *)&storage, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    while (accepted < 0 && errno == EINTR);
    if (accepted < 0) return -errno;
    *remote = clinux_load_address(&storage);
    if (tunes) clinux_stream_tune(accepted);
    return accepted;
}

int clinux_tcp_connect(struct clinux_address address) {
    const int ipv4 = is_ipv4(address);
    struct sockaddr_in6 storage;
    int descriptor = open_stream(ipv4);
    if (descriptor < 0) return descriptor;
    clinux_stream_tune(descriptor);
    socklen_t length = clinux_store_address(&storage, address, ipv4);
    if (connect(descriptor, (struct sockaddr *)&storage, length) == 0 || errno == EINPROGRESS) return descriptor;
    int error = errno;
    close(descriptor);
    return -error;
}

int clinux_tcp_finish(int descriptor, int milliseconds) {
    struct pollfd entry = {.fd = descriptor, .events = POLLOUT};
    int error = 0;
    socklen_t length = sizeof error;
    int count = poll(&entry, 1, milliseconds);
    if (count < 0) return -errno;
    if (count == 0) return -ETIMEDOUT;
    if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length) < 0) return -errno;
    return -error;
}

int clinux_stream_receive(int descriptor, void *bytes, int count) {
    ssize_t received;
    do received = recv(descriptor, bytes, (size_t)count, MSG_DONTWAIT);
    while (received < 0 && errno == EINTR);
    if (received == 0) return -ECONNRESET;
    return received < 0 ? -errno : (int)received;
}

int clinux_stream_peek(int descriptor, void *bytes, int count) {
    ssize_t found;
    do found = recv(descriptor, bytes, (size_t)count, MSG_DONTWAIT | MSG_PEEK);
    while (found < 0 && errno == EINTR);
    if (found == 0) return -ECONNRESET;
    return found < 0 ? -errno : (int)found;
}

int clinux_stream_pair(int pair[2]) {
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0 ? -errno : 0;
}

void clinux_stream_end(int descriptor) { (void)shutdown(descriptor, SHUT_WR); }

int clinux_stream_send(int descriptor, const void *bytes, int count) {
    ssize_t sent;
    do sent = send(descriptor, bytes, (size_t)count, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : (int)sent;
}

int clinux_stream_note_arrivals(int descriptor) {
    const int on = 1;
    return setsockopt(descriptor, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) < 0 ? -errno : 0;
}

int clinux_stream_receive_noted(int descriptor, void *bytes, int count, int64_t *age) {
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct timespec))];
    struct iovec range = {.iov_base = bytes, .iov_len = (size_t)count};
    struct msghdr message = {
        .msg_iov = &range, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t received;
    do received = recvmsg(descriptor, &message, MSG_DONTWAIT);
    while (received < 0 && errno == EINTR);
    *age = -1;
    if (received == 0) return -ECONNRESET;
    if (received < 0) return -errno;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SO_TIMESTAMPNS) {
        struct timespec came, now;
        memcpy(&came, CMSG_DATA(header), sizeof came);
        clock_gettime(CLOCK_REALTIME, &now);
        *age = (int64_t)(now.tv_sec - came.tv_sec) * 1000000000 + (now.tv_nsec - came.tv_nsec);
    }
    return (int)received;
}

int clinux_local_address(int descriptor, struct clinux_address *address) {
    struct sockaddr_in6 storage;
    socklen_t length = sizeof storage;
    if (getsockname(descriptor, (struct sockaddr *)&storage, &length) < 0) return -errno;
    *address = clinux_load_address(&storage);
    return 0;
}

static int set_buffer(int descriptor, int force, int plain, int bytes) {
    int granted = 0;
    socklen_t length = sizeof granted;
    if (setsockopt(descriptor, SOL_SOCKET, force, &bytes, sizeof bytes) < 0)
        (void)setsockopt(descriptor, SOL_SOCKET, plain, &bytes, sizeof bytes);
    if (getsockopt(descriptor, SOL_SOCKET, plain, &granted, &length) < 0) return -errno;
    return granted;
}

int clinux_set_receive_buffer(int descriptor, int bytes) {
    return set_buffer(descriptor, SO_RCVBUFFORCE, SO_RCVBUF, bytes);
}

int clinux_set_send_buffer(int descriptor, int bytes) {
    return set_buffer(descriptor, SO_SNDBUFFORCE, SO_SNDBUF, bytes);
}

int clinux_enable_coalescing(int descriptor) {
    const int on = 1;
    return setsockopt(descriptor, IPPROTO_UDP, UDP_GRO, &on, sizeof on) < 0 ? -errno : 0;
}

int clinux_enable_arrival_times(int descriptor) {
    const int on = 1;
    return setsockopt(descriptor, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) < 0 ? -errno : 0;
}

int clinux_supports_segmentation(int descriptor) {
    int size = 0;
    socklen_t length = sizeof size;
    return getsockopt(descriptor, IPPROTO_UDP, UDP_SEGMENT, &size, &length) == 0;
}

int64_t clinux_receive_drops(int descriptor) {
    uint32_t info[SK_MEMINFO_VARS] = {0};
    socklen_t length = sizeof info;
    if (getsockopt(descriptor, SOL_SOCKET, SO_MEMINFO, info, &length) < 0) return -errno;
    return info[SK_MEMINFO_DROPS];
}

void clinux_close(int descriptor) {
    (void)close(descriptor);
}

socklen_t clinux_store_address(struct sockaddr_in6 *storage, struct clinux_address address, int ipv4) {
    // An IPv6 address stays one also for an IPv4 socket, which refuses it: its last four bytes are another host's.
    if (ipv4 && is_ipv4(address)) {
        struct sockaddr_in *in = (struct sockaddr_in *)storage;
        *in = (struct sockaddr_in){
            .sin_family = AF_INET, .sin_port = htons(address.port), .sin_addr.s_addr = htonl((uint32_t)address.low)};
        return sizeof *in;
    }
    const uint64_t words[2] = {__builtin_bswap64(address.high), __builtin_bswap64(address.low)};
    *storage = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(address.port)};
    memcpy(&storage->sin6_addr, words, sizeof words);
    return sizeof *storage;
}

struct clinux_address clinux_load_address(const struct sockaddr_in6 *storage) {
    if (storage->sin6_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)storage;
        return (struct clinux_address){
            .low = (uint64_t)0xFFFF << 32 | ntohl(in->sin_addr.s_addr), .port = ntohs(in->sin_port)};
    }
    uint64_t words[2];
    memcpy(words, &storage->sin6_addr, sizeof words);
    return (struct clinux_address){
        .high = __builtin_bswap64(words[0]), .low = __builtin_bswap64(words[1]), .port = ntohs(storage->sin6_port)};
}

void clinux_set_segment_size(struct msghdr *header, struct clinux_control *control, uint16_t size) {
    header->msg_control = control;
    header->msg_controllen = CMSG_SPACE(sizeof size);
    struct cmsghdr *message = CMSG_FIRSTHDR(header);
    message->cmsg_level = IPPROTO_UDP;
    message->cmsg_type = UDP_SEGMENT;
    message->cmsg_len = CMSG_LEN(sizeof size);
    memcpy(CMSG_DATA(message), &size, sizeof size);
}

int clinux_segment_size(const struct msghdr *header) {
    struct msghdr *mutable = (struct msghdr *)header;
    for (struct cmsghdr *message = CMSG_FIRSTHDR(mutable); message; message = CMSG_NXTHDR(mutable, message)) {
        if (message->cmsg_level != IPPROTO_UDP || message->cmsg_type != UDP_GRO) continue;
        int size = 0;
        memcpy(&size, CMSG_DATA(message), sizeof size);
        return size > 0 ? size : 0;
    }
    return 0;
}

int64_t clinux_arrival_time(const struct msghdr *header) {
    struct msghdr *mutable = (struct msghdr *)header;
    for (struct cmsghdr *message = CMSG_FIRSTHDR(mutable); message; message = CMSG_NXTHDR(mutable, message)) {
        if (message->cmsg_level != SOL_SOCKET || message->cmsg_type != SCM_TIMESTAMPNS) continue;
        struct timespec time;
        memcpy(&time, CMSG_DATA(message), sizeof time);
        return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
    }
    return 0;
}

int clinux_send(int descriptor, struct clinux_message *messages, unsigned int count) {
    int sent;
    do sent = sendmmsg(descriptor, (struct mmsghdr *)messages, count, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : sent;
}

int clinux_receive(int descriptor, struct clinux_message *messages, unsigned int count) {
    int received;
    do received = recvmmsg(descriptor, (struct mmsghdr *)messages, count, MSG_DONTWAIT, NULL);
    while (received < 0 && errno == EINTR);
    return received < 0 ? -errno : received;
}
