// Apart, because the kernel's own description of TCP_INFO, which glibc's is behind, does not go with glibc's header.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

// As CWebSockets.h has it.
int64_t cws_bytes_given(int socket);

int64_t cws_bytes_given(int socket) {
    struct tcp_info info;
    socklen_t length = sizeof info;
    memset(&info, 0, sizeof info);
    if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) < 0)
        return -1;
    // Linux 4.19.
    if (length < offsetof(struct tcp_info, tcpi_bytes_retrans) + sizeof info.tcpi_bytes_retrans)
        return -1;
    return (int64_t)(info.tcpi_bytes_sent - info.tcpi_bytes_retrans + info.tcpi_notsent_bytes);
}
