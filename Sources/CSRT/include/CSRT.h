/// libsrt, as far as publishers are taken by it, and publish by it.
///
/// Every function that can fail returns a negative number: of sockets the library's error, of addresses an errno.
#pragma once
#include <stdint.h>
#include "CLinux.h"

/// Decides whether somebody is let in; called by a thread of the library, which receives nothing meanwhile.
/// @param socket what `csrt_accept` will return for it.
/// @param stream_id what the caller says it wants, at most 512 bytes.
/// @return 0 to let it in, or the code of a rejection, 1000 and above.
typedef int csrt_admit(void *context, int socket, struct clinux_address remote, const char *stream_id);

struct csrt_options {
    /// NULL for no encryption, else 10 to 79 characters.
    const char *passphrase;
    /// In milliseconds, from sending to delivery; a caller may ask for more.
    int latency;
    int backlog;
};

/// Opens a UDP port where callers are taken; no call of it blocks.
/// @param context outlives the process's last call of `admit`.
/// @return a socket, or a negative errno.
int csrt_listen(struct clinux_address address, struct csrt_options options, csrt_admit *admit, void *context);
int csrt_local_address(int socket, struct clinux_address *address);
/// @return a socket, or a negative number where nobody waits.
int csrt_accept(int listener);
/// @return the length of a message, 0 where none waits, or a negative number where the connection is gone.
int csrt_receive(int socket, void *bytes, int count);
void csrt_close(int socket);

/// Since the connection began.
struct csrt_statistics {
    double round_trip_milliseconds;
    int64_t received, lost, retransmitted, dropped;
    int latency;
};
/// @return 0, or a negative number where the connection is gone.
int csrt_statistics(int socket, struct csrt_statistics *statistics);

/// Begins to call a server, to send to it; does not wait for it.
/// @param options of which the latency is what both ends keep at least, and the backlog has no meaning.
/// @param stream_id what the server is told, at most 512 bytes.
/// @return a socket, or a negative errno.
int csrt_call(struct clinux_address address, struct csrt_options options, const char *stream_id);
/// @return 0 while it is being connected, 1 once it is, or a negative number where it is gone.
int csrt_connected(int socket);
/// Why a call came to nothing, in words.
const char *csrt_reason(int socket);
/// @param count in bytes, at most 1,316.
/// @return 0 once the library has it, 1 where it has no room, or a negative number where the connection is gone.
int csrt_send(int socket, const void *bytes, int count);

/// Since the connection began; in packets, but for `bytes`.
struct csrt_sending {
    int64_t sent, retransmitted, lost, dropped, bytes, waiting;
    double round_trip_milliseconds;
};
/// @return 0, or a negative number where the connection is gone.
int csrt_sending_statistics(int socket, struct csrt_sending *sending);

int csrt_poll_open(void);
int csrt_poll_watch(int poll, int socket);
/// Watches a descriptor of the system, too.
int csrt_poll_watch_descriptor(int poll, int descriptor);
/// Waits until something can be accepted or received, or is gone, or until a descriptor has input.
/// @return how many sockets were written.
int csrt_poll_wait(int poll, int *sockets, int capacity, int milliseconds);
void csrt_poll_close(int poll);
