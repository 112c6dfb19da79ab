/// Linux system calls that Swift does not see, or sees only through macros.
///
/// Every function that can fail returns a negative errno, so that no caller has to read `errno`.
#pragma once
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <netinet/in.h>

/// An address as Swift holds it: eight and eight bytes read as big-endian numbers, IPv4 in mapped form.
struct clinux_address {
    uint64_t high, low;
    uint16_t port;
};

/// Room for control messages: a segment size outgoing; a segment size and a time incoming.
struct clinux_control {
    _Alignas(8) unsigned char bytes[64];
};

/// One message of a `sendmmsg` or `recvmmsg` call; the same layout as `struct mmsghdr`.
struct clinux_message {
    struct msghdr header;
    unsigned int length;
};

// Sockets

/// Opens a non-blocking UDP socket, IPv4 only if `address` is IPv4, else IPv6 that also takes IPv4, and binds it.
/// @param joins whether the port may be one that `clinux_share_port` was called for (SO_REUSEPORT).
int clinux_udp_open(struct clinux_address address, int joins);
/// Lets further sockets of this user be bound to a bound socket's port; each source then leads to one of them.
/// @return 0, or a negative errno.
int clinux_share_port(int descriptor);
/// The address the kernel chose.
int clinux_local_address(int descriptor, struct clinux_address *address);
/// Asks for a buffer of `bytes`, past the system's limit where that is permitted.
/// @return what the kernel granted, as it counts.
int clinux_set_receive_buffer(int descriptor, int bytes);
int clinux_set_send_buffer(int descriptor, int bytes);
/// Lets the kernel hand over runs of datagrams as one (UDP_GRO, Linux 5.0).
int clinux_enable_coalescing(int descriptor);
/// Has the kernel tell when each datagram arrived (SO_TIMESTAMPNS); see `clinux_arrival_time`.
/// @return 0, or a negative errno.
int clinux_enable_arrival_times(int descriptor);
/// Whether the kernel knows UDP_SEGMENT (Linux 4.18).
int clinux_supports_segmentation(int descriptor);
/// Datagrams the kernel dropped because the receive buffer was full (SO_MEMINFO, Linux 4.12).
int64_t clinux_receive_drops(int descriptor);
void clinux_close(int descriptor);

// Streams

/// Opens a non-blocking TCP socket that listens, with the families of `clinux_udp_open`.
int clinux_tcp_listen(struct clinux_address address, int backlog);
/// Takes a connection that waits; it does not block, and says where it comes from.
/// `tunes` says whether it is as `clinux_stream_tune` makes it.
int clinux_tcp_accept(int descriptor, struct clinux_address *remote, int tunes);
/// Bounds what is unsent in the kernel, and gives up a peer that acknowledges nothing for half a minute.
void clinux_stream_tune(int descriptor);
/// Begins to connect, without waiting for it.
int clinux_tcp_connect(struct clinux_address address);
/// Waits at most `milliseconds` for a connection that begins; 0 once it stands.
int clinux_tcp_finish(int descriptor, int milliseconds);
/// @return the number of bytes, or a negative errno; `-ECONNRESET` also for a stream that was ended in order.
int clinux_stream_receive(int descriptor, void *bytes, int count);
int clinux_stream_send(int descriptor, const void *bytes, int count);
/// The same as `clinux_stream_receive`, and leaves the bytes where they are.
int clinux_stream_peek(int descriptor, void *bytes, int count);
/// Makes two sockets without an address, each of which is the other end of the other; they do not block.
/// @return 0, or a negative errno.
int clinux_stream_pair(int pair[2]);
/// Says that nothing more will be sent.
void clinux_stream_end(int descriptor);
/// How far a stream has come with what it was given to send.
struct clinux_backlog {
    /// Bytes that were given and that the peer has not acknowledged (SIOCOUTQ).
    int32_t unacknowledged;
    /// The shortest round trip in microseconds (TCP_INFO); negative where none was measured.
    int64_t round_trip;
};
/// @return 0, or a negative errno.
int clinux_stream_backlog(int descriptor, struct clinux_backlog *backlog);
/// Has the kernel note when bytes come (SO_TIMESTAMPNS).
int clinux_stream_note_arrivals(int descriptor);
/// The same as `clinux_stream_receive`; `*age` is how long ago the last of the bytes came, in nanoseconds, or negative
/// where the kernel did not note it.
int clinux_stream_receive_noted(int descriptor, void *bytes, int count, int64_t *age);

// Messages

/// Writes `address` for an IPv4 socket or an IPv6 one; an IPv4 socket refuses to send to an IPv6 address.
/// @return its length in bytes.
socklen_t clinux_store_address(struct sockaddr_in6 *storage, struct clinux_address address, int is_ipv4);
struct clinux_address clinux_load_address(const struct sockaddr_in6 *storage);
/// Adds the instruction to cut the message into datagrams of `size` bytes.
void clinux_set_segment_size(struct msghdr *header, struct clinux_control *control, uint16_t size);
/// @return the size of the datagrams the kernel glued together; 0 if it glued none.
int clinux_segment_size(const struct msghdr *header);
/// @return when a message arrived, in nanoseconds of CLOCK_REALTIME; 0 if the kernel did not say.
int64_t clinux_arrival_time(const struct msghdr *header);
/// @return the number of messages taken, or a negative errno.
int clinux_send(int descriptor, struct clinux_message *messages, unsigned int count);
int clinux_receive(int descriptor, struct clinux_message *messages, unsigned int count);

// Waiting

int clinux_event_open(void);
void clinux_event_signal(int descriptor);
void clinux_event_clear(int descriptor);

struct clinux_ready {
    uint32_t token;
    int is_readable, is_writable;
};

int clinux_poll_open(void);
/// Watches for input and, if asked, for room to write. Call again to change it.
int clinux_poll_set(int poll, int descriptor, uint32_t token, int wants_writable, int is_new);
/// Watches for more input, more room to write and the end of input: each is told once, until there is more of it.
int clinux_poll_set_changes(int poll, int descriptor, uint32_t token);
/// Waits up to `nanoseconds`; for ever if negative.
/// @return the number of entries written, at most 16.
int clinux_poll_wait(int poll, struct clinux_ready ready[16], int64_t nanoseconds);
/// Watches for input, and tells only of what comes new (EPOLLET): the reader must empty the socket.
int clinux_poll_watch_edges(int poll, int descriptor, uint32_t token);
int clinux_poll_forget(int poll, int descriptor);
/// Waits as `clinux_poll_wait` does.
/// @return how many tokens were written, at most `capacity` and 256, or a negative errno.
int clinux_poll_wait_many(int poll, uint32_t *tokens, int capacity, int64_t nanoseconds);
/// Waits until `descriptor` takes output, at most `milliseconds`.
int clinux_wait_writable(int descriptor, int milliseconds);
/// Waits until `descriptor` has input, at most `milliseconds`.
int clinux_wait_readable(int descriptor, int milliseconds);

// Threads and the process

int64_t clinux_monotonic_nanoseconds(void);
int64_t clinux_realtime_nanoseconds(void);
/// CPU time of the calling thread.
int64_t clinux_thread_nanoseconds(void);
/// CPU time of the process.
int64_t clinux_process_nanoseconds(void);
/// Gives the calling thread this niceness; -EACCES or -EPERM where the system does not let it come forward.
int clinux_thread_prefer(int niceness);
/// Runs `body(context)` on a new thread of this name, on CPU `cpu` only unless that is negative.
/// A refused CPU is no failure: `*pinned` tells.
int clinux_thread_start(
    uint64_t *thread, const char *name, int cpu, int *pinned, void (*body)(void *), void *context);
int clinux_thread_join(uint64_t thread);
int clinux_thread_detach(uint64_t thread);
int clinux_thread_is_current(uint64_t thread);
/// The number of CPUs this process may run on, and the nth of them.
int clinux_cpu_count(void);
int clinux_cpu_at(int index);
/// Raises the limit on open files as far as permitted.
/// @return the limit that holds now.
int64_t clinux_raise_open_files(void);
int64_t clinux_resident_bytes(void);

struct clinux_interface {
    struct clinux_address address;
    unsigned int index;
    int is_up, is_loopback;
};

/// Fills `interfaces` with the addresses of this machine.
/// @return how many there are, at most `count`.
int clinux_interfaces(struct clinux_interface *interfaces, int count);

/// Whether the system's time follows a clock that is right (STA_UNSYNC of adjtimex(2) is not set).
int clinux_clock_is_synchronised(void);
