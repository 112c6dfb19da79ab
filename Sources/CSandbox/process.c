#define _GNU_SOURCE
#include "CSandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int csandbox_channel(int descriptors[2], int bytes) {
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, descriptors) != 0) return -errno;
    for (int end = 0; end < 2; end++) setsockopt(descriptors[end], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    return 0;
}

int csandbox_shared_memory(size_t bytes) {
    int descriptor = memfd_create("rostrum", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor < 0) return -errno;
    // Were it cut off by the other process, this one would end by SIGBUS where it looks.
    if (ftruncate(descriptor, (off_t)bytes) == 0
        && fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return descriptor;
    int error = errno;
    close(descriptor);
    return -error;
}

int csandbox_pipe(int descriptors[2]) {
    if (pipe2(descriptors, O_CLOEXEC) != 0) return -errno;
    return fcntl(descriptors[0], F_SETFL, O_NONBLOCK) != 0 ? -errno : 0;
}

uintptr_t csandbox_map(int descriptor, size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    return memory == MAP_FAILED ? 0 : (uintptr_t)memory;
}

void csandbox_unmap(uintptr_t memory, size_t bytes) { munmap((void *)memory, bytes); }

void csandbox_store_word(uintptr_t memory, size_t index, uint64_t value) {
    __atomic_store_n((uint64_t *)memory + index, value, __ATOMIC_RELEASE);
}

uint64_t csandbox_load_word(uintptr_t memory, size_t index) {
    return __atomic_load_n((uint64_t *)memory + index, __ATOMIC_ACQUIRE);
}

pid_t csandbox_spawn(
    const char *path, char *const arguments[], char *const environment[], int channel, int memory, int errors) {
    // Above 3 and 4 first, so that neither takes the other's place.
    int high_channel = fcntl(channel, F_DUPFD_CLOEXEC, 10), high_memory = fcntl(memory, F_DUPFD_CLOEXEC, 10);
    if (high_channel < 0 || high_memory < 0) return -errno;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    if (errors >= 0) posix_spawn_file_actions_adddup2(&actions, errors, 2);
    posix_spawn_file_actions_adddup2(&actions, high_channel, 3);
    posix_spawn_file_actions_adddup2(&actions, high_memory, 4);
    posix_spawn_file_actions_addclosefrom_np(&actions, 5);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    // A group of its own: what a terminal sends to the server is not meant for it.
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    pid_t process = -1;
    int error = posix_spawn(&process, path, &actions, &attributes, arguments, environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(high_channel);
    close(high_memory);
    return error != 0 ? -error : process;
}

int csandbox_ended(pid_t process, int waits, int *signal, int *status, int64_t *cpu_nanoseconds) {
    int result = 0;
    struct rusage usage;
    pid_t ended;
    do ended = wait4(process, &result, waits ? 0 : WNOHANG, &usage);
    while (ended < 0 && errno == EINTR);
    if (ended == 0) return 0;
    if (ended < 0) return -errno;
    *signal = WIFSIGNALED(result) ? WTERMSIG(result) : 0;
    *status = WIFEXITED(result) ? WEXITSTATUS(result) : 0;
    *cpu_nanoseconds =
        ((int64_t)usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000
        + ((int64_t)usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
    return 1;
}

void csandbox_kill(pid_t process) { kill(process, SIGKILL); }

int64_t csandbox_cpu_nanoseconds(pid_t process) {
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

int64_t csandbox_thread_cpu_nanoseconds(pid_t process, pid_t thread) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", process, thread);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return -errno;
    ssize_t count = read(descriptor, text, sizeof text - 1);
    close(descriptor);
    if (count <= 0) return -EIO;
    text[count] = 0;
    // The thread's name, which it chose itself, ends with the last parenthesis; fields 14 and 15 are its time.
    const char *rest = strrchr(text, ')');
    unsigned long user, system;
    if (rest == NULL || sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
        return -EIO;
    return (int64_t)(user + system) * (1000000000 / sysconf(_SC_CLK_TCK));
}

int64_t csandbox_read(int descriptor, void *bytes, size_t count) {
    ssize_t done;
    do done = read(descriptor, bytes, count);
    while (done < 0 && errno == EINTR);
    return done < 0 ? -errno : done;
}

int64_t csandbox_receive(int descriptor, void *bytes, size_t count) {
    ssize_t received;
    do received = recv(descriptor, bytes, count, 0);
    while (received < 0 && errno == EINTR);
    return received < 0 ? -errno : received;
}

int64_t csandbox_send(int descriptor, const void *bytes, size_t count) {
    ssize_t sent;
    do sent = send(descriptor, bytes, count, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : sent;
}

int64_t csandbox_send_at_once(int descriptor, const void *bytes, size_t count) {
    ssize_t sent = send(descriptor, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent < 0 ? -errno : sent;
}

int csandbox_wait(int descriptor, int milliseconds) {
    struct pollfd entry = {.fd = descriptor, .events = POLLIN};
    int ready = poll(&entry, 1, milliseconds);
    return ready < 0 ? (errno == EINTR ? 0 : -errno) : ready;
}

int csandbox_wait_either(int first, int second, int milliseconds) {
    struct pollfd entries[2] = {{.fd = first, .events = POLLIN}, {.fd = second, .events = POLLIN}};
    int ready = poll(entries, 2, milliseconds);
    if (ready < 0) return errno == EINTR ? 0 : -errno;
    return (entries[0].revents != 0 ? 1 : 0) | (entries[1].revents != 0 ? 2 : 0);
}

void csandbox_shutdown(int descriptor) { shutdown(descriptor, SHUT_RDWR); }

void csandbox_close(int descriptor) { close(descriptor); }

void csandbox_usage(int64_t *cpu_nanoseconds, int64_t *resident_bytes) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    *cpu_nanoseconds =
        ((int64_t)usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000
        + ((int64_t)usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
    *resident_bytes = (int64_t)usage.ru_maxrss * 1024;
}
