// Apart from the other sockets: glibc's own header of TCP lacks what newer kernels tell.
#include "CLinux.h"

#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

int clinux_stream_backlog(int descriptor, struct clinux_backlog *backlog) {
    int unacknowledged = 0;
    if (ioctl(descriptor, SIOCOUTQ, &unacknowledged) < 0) return -errno;
    backlog->unacknowledged = unacknowledged;
    backlog->round_trip = -1;
    struct tcp_info info;
    socklen_t length = sizeof info;
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) < 0) return 0;
    // All bits are set before the first measurement.
    if (length >= offsetof(struct tcp_info, tcpi_min_rtt) + sizeof info.tcpi_min_rtt && info.tcpi_min_rtt != ~0U)
        backlog->round_trip = info.tcpi_min_rtt;
    return 0;
}
