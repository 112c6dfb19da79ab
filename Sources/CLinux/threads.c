// Not in the header: Swift reads glibc without it, and the two views would differ.
#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

int clinux_event_open(void) {
    int descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return descriptor < 0 ? -errno : descriptor;
}

void clinux_event_signal(int descriptor) {
    // Fails only when the counter is about to overflow: then the reader is awake anyway.
    (void)!eventfd_write(descriptor, 1);
}

void clinux_event_clear(int descriptor) {
    eventfd_t value;
    (void)!eventfd_read(descriptor, &value);
}

int clinux_poll_open(void) {
    int descriptor = epoll_create1(EPOLL_CLOEXEC);
    return descriptor < 0 ? -errno : descriptor;
}

int clinux_poll_set(int poll, int descriptor, uint32_t token, int wants_writable, int is_new) {
    struct epoll_event event = {.events = EPOLLIN | (wants_writable ? EPOLLOUT : 0), .data.u32 = token};
    return epoll_ctl(poll, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event) < 0 ? -errno : 0;
}

int clinux_poll_set_changes(int poll, int descriptor, uint32_t token) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.u32 = token};
    return epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event) < 0 ? -errno : 0;
}

static int wait_events(int poll, struct epoll_event *events, int capacity, int64_t nanoseconds) {
    enum { second = 1000000000, millisecond = 1000000 };
    const struct timespec timeout = {.tv_sec = nanoseconds / second, .tv_nsec = nanoseconds % second};
    int count = epoll_pwait2(poll, events, capacity, nanoseconds < 0 ? NULL : &timeout, NULL);
    if (count < 0 && (errno == ENOSYS || errno == EPERM)) {
        // Before Linux 5.11, and where a sandbox does not know the call: whole milliseconds, rounded up.
        const int64_t rounded = nanoseconds < 0 ? -1 : (nanoseconds + millisecond - 1) / millisecond;
        count = epoll_wait(poll, events, capacity, rounded > 1000000 ? 1000000 : (int)rounded);
    }
    if (count < 0) return errno == EINTR ? 0 : -errno;
    return count;
}

int clinux_poll_wait(int poll, struct clinux_ready ready[16], int64_t nanoseconds) {
    struct epoll_event events[16];
    const int count = wait_events(poll, events, 16, nanoseconds);
    for (int i = 0; i < count; i++)
        ready[i] = (struct clinux_ready){
            .token = events[i].data.u32,
            .is_readable = (events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0,
            .is_writable = (events[i].events & EPOLLOUT) != 0};
    return count;
}

int clinux_poll_watch_edges(int poll, int descriptor, uint32_t token) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u32 = token};
    return epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event) < 0 ? -errno : 0;
}

int clinux_poll_forget(int poll, int descriptor) {
    return epoll_ctl(poll, EPOLL_CTL_DEL, descriptor, NULL) < 0 ? -errno : 0;
}

int clinux_poll_wait_many(int poll, uint32_t *tokens, int capacity, int64_t nanoseconds) {
    struct epoll_event events[256];
    const int count = wait_events(poll, events, capacity > 256 ? 256 : capacity, nanoseconds);
    for (int i = 0; i < count; i++) tokens[i] = events[i].data.u32;
    return count;
}

static int wait_for(int descriptor, short events, int milliseconds) {
    struct pollfd entry = {.fd = descriptor, .events = events};
    int count = poll(&entry, 1, milliseconds);
    return count < 0 ? -errno : count;
}

int clinux_wait_writable(int descriptor, int milliseconds) {
    return wait_for(descriptor, POLLOUT, milliseconds);
}

int clinux_wait_readable(int descriptor, int milliseconds) {
    return wait_for(descriptor, POLLIN, milliseconds);
}

static int64_t nanoseconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t clinux_monotonic_nanoseconds(void) {
    return nanoseconds(CLOCK_MONOTONIC);
}

int64_t clinux_realtime_nanoseconds(void) {
    return nanoseconds(CLOCK_REALTIME);
}

int64_t clinux_thread_nanoseconds(void) {
    return nanoseconds(CLOCK_THREAD_CPUTIME_ID);
}

int64_t clinux_process_nanoseconds(void) {
    return nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
}

int clinux_thread_prefer(int niceness) {
    // Linux keeps it of each thread, which 0 names.
    return setpriority(PRIO_PROCESS, 0, niceness) != 0 ? -errno : 0;
}

struct start {
    void (*body)(void *);
    void *context;
    char name[16];
};

static void *run(void *argument) {
    struct start start = *(struct start *)argument;
    free(argument);
    pthread_setname_np(pthread_self(), start.name);
    start.body(start.context);
    return NULL;
}

int clinux_thread_start(
    uint64_t *thread, const char *name, int cpu, int *pinned, void (*body)(void *), void *context) {
    _Static_assert(sizeof(pthread_t) == sizeof(uint64_t), "pthread_t fits");
    sigset_t all, previous;
    pthread_t handle;
    struct start *start = malloc(sizeof *start);
    if (!start) return -ENOMEM;
    start->body = body;
    start->context = context;
    snprintf(start->name, sizeof start->name, "%s", name);

    // Signals belong to the thread that waits for them; a crash belongs to the thread that crashed.
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT};
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, &previous);
    int error = pthread_create(&handle, NULL, run, start);
    pthread_sigmask(SIG_SETMASK, &previous, NULL);
    if (error) {
        free(start);
        return -error;
    }
    *thread = (uint64_t)handle;
    *pinned = 0;
    if (cpu >= 0 && cpu < CPU_SETSIZE) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((size_t)cpu, &set);
        *pinned = pthread_setaffinity_np(handle, sizeof set, &set) == 0;
    }
    return 0;
}

int clinux_thread_join(uint64_t thread) {
    return -pthread_join((pthread_t)thread, NULL);
}

int clinux_thread_detach(uint64_t thread) {
    return -pthread_detach((pthread_t)thread);
}

int clinux_thread_is_current(uint64_t thread) {
    return pthread_equal((pthread_t)thread, pthread_self()) != 0;
}

int clinux_cpu_count(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) < 0) return 1;
    return CPU_COUNT(&set);
}

int clinux_cpu_at(int index) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) < 0) return -errno;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET((size_t)cpu, &set) && index-- == 0) return cpu;
    return -ENOENT;
}

int64_t clinux_raise_open_files(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return -errno;
    if (limit.rlim_cur < limit.rlim_max) {
        const struct rlimit raised = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
    }
    return limit.rlim_cur > INT64_MAX ? INT64_MAX : (int64_t)limit.rlim_cur;
}

int64_t clinux_resident_bytes(void) {
    long long total, resident;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file) return -errno;
    const int count = fscanf(file, "%lld %lld", &total, &resident);
    fclose(file);
    return count == 2 ? resident * sysconf(_SC_PAGESIZE) : -EIO;
}

int clinux_interfaces(struct clinux_interface *interfaces, int count) {
    struct ifaddrs *list = NULL;
    int found = 0;
    if (getifaddrs(&list) < 0) return -errno;
    for (struct ifaddrs *entry = list; entry && found < count; entry = entry->ifa_next) {
        if (!entry->ifa_addr) continue;
        if (entry->ifa_addr->sa_family != AF_INET && entry->ifa_addr->sa_family != AF_INET6) continue;
        interfaces[found++] = (struct clinux_interface){
            .address = clinux_load_address((const struct sockaddr_in6 *)(const void *)entry->ifa_addr),
            .index = if_nametoindex(entry->ifa_name),
            .is_up = (entry->ifa_flags & IFF_UP) && (entry->ifa_flags & IFF_RUNNING),
            .is_loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0};
    }
    freeifaddrs(list);
    return found;
}

int clinux_clock_is_synchronised(void) {
    // Changes nothing: no modes are set.
    struct timex state = {0};
    int result = adjtimex(&state);
    if (result < 0)
        return -errno;
    return result != TIME_ERROR && !(state.status & STA_UNSYNC);
}
