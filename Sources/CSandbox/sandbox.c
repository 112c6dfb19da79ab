#define _GNU_SOURCE
#include "CSandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int csandbox_subordinate(pid_t parent, int niceness) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -errno;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return -errno;
    // The parent may have gone before it was asked for.
    if (parent > 0 && getppid() != parent) return -ESRCH;
    // Niceness is a thread's, and what the thread that started this one has is libdispatch's doing: it counts from the
    // parent's main thread.
    errno = 0;
    const int base = getpriority(PRIO_PROCESS, (id_t)(parent > 0 ? parent : 0));
    if (base == -1 && errno != 0) return -errno;
    if (setpriority(PRIO_PROCESS, 0, base + niceness) == 0) return 0;
    // Nobody but the superuser comes forward; behind already is as good.
    return errno == EACCES ? 0 : -errno;
}

int csandbox_yield_to_all(void) {
    const struct sched_param parameters = {.sched_priority = 0};
    return sched_setscheduler(0, SCHED_IDLE, &parameters) != 0 ? -errno : 0;
}

int csandbox_yield_to_most(void) {
    enum { least = 19 };
    const struct sched_param parameters = {.sched_priority = 0};
    if (sched_setscheduler(0, SCHED_BATCH, &parameters) != 0) return -errno;
    // Of this thread, as Linux has it.
    return setpriority(PRIO_PROCESS, 0, least) != 0 ? -errno : 0;
}

int csandbox_go_first(void) {
    int descriptor = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return -errno;
    int result = write(descriptor, "1000", 4) == 4 ? 0 : -errno;
    close(descriptor);
    return result;
}

int csandbox_hide_memory(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 ? -errno : 0; }

pid_t csandbox_thread(void) { return (pid_t)syscall(SYS_gettid); }

int csandbox_drop_privileges(void) {
    enum { nobody = 65534 };
    if (geteuid() != 0) return 0;
    if (setgroups(0, NULL) != 0 || setresgid(nobody, nobody, nobody) != 0) return -errno;
    return setresuid(nobody, nobody, nobody) != 0 ? -errno : 0;
}

static int set_limit(int resource, uint64_t value) {
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0) return -errno;
    if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < value) value = limit.rlim_max;
    limit.rlim_cur = limit.rlim_max = value;
    return setrlimit(resource, &limit) != 0 ? -errno : 0;
}

int csandbox_limit(uint64_t memory_bytes, uint64_t open_files, uint64_t threads) {
    int result = set_limit(RLIMIT_CORE, 0);
    if (result == 0) result = set_limit(RLIMIT_NPROC, threads);
    if (result == 0) result = set_limit(RLIMIT_NOFILE, open_files);
    // AddressSanitizer maps terabytes.
    if (result == 0 && memory_bytes > 0) result = set_limit(RLIMIT_AS, memory_bytes);
    return result;
}

int csandbox_confine_files(const char *const paths[], size_t count) {
    // All that the first version knows; later kernels forbid no less.
    struct landlock_ruleset_attr attributes = {.handled_access_fs = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1};
    int rules = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
    if (rules < 0) return -errno;
    for (size_t index = 0; index < count; index++) {
        int directory = open(paths[index], O_PATH | O_CLOEXEC);
        if (directory < 0) continue;
        struct landlock_path_beneath_attr rule = {
            .allowed_access = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
            .parent_fd = directory,
        };
        syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
        close(directory);
    }
    int result = syscall(SYS_landlock_restrict_self, rules, 0) != 0 ? -errno : 0;
    close(rules);
    return result;
}

// What decoders, encoders, the muxer, libc and the Swift runtime do. All else fails as in a kernel that does not know
// the call (ENOSYS), which libraries expect and do without.
static const int allowed[] = {
    // What is open, and the one socket.
    SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(preadv), SCMP_SYS(write), SCMP_SYS(writev),
    SCMP_SYS(pwrite64), SCMP_SYS(lseek), SCMP_SYS(close), SCMP_SYS(dup), SCMP_SYS(dup2), SCMP_SYS(dup3),
    SCMP_SYS(sendto), SCMP_SYS(recvfrom), SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(select), SCMP_SYS(pselect6),
    SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait), SCMP_SYS(eventfd2),
    SCMP_SYS(timerfd_create), SCMP_SYS(timerfd_settime), SCMP_SYS(timerfd_gettime), SCMP_SYS(pipe2),
    // Looking at files, as far as Landlock lets it read them.
    SCMP_SYS(fstat), SCMP_SYS(stat), SCMP_SYS(lstat), SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(statfs),
    SCMP_SYS(fstatfs), SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(readlink),
    SCMP_SYS(readlinkat), SCMP_SYS(getdents64), SCMP_SYS(getcwd), SCMP_SYS(fadvise64),
    // Memory.
    SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(mprotect), SCMP_SYS(madvise), SCMP_SYS(mincore),
    SCMP_SYS(brk),
    // Threads and their signals.
    SCMP_SYS(futex), SCMP_SYS(futex_waitv), SCMP_SYS(set_robust_list), SCMP_SYS(get_robust_list), SCMP_SYS(rseq),
    SCMP_SYS(set_tid_address), SCMP_SYS(membarrier), SCMP_SYS(sched_yield), SCMP_SYS(sched_getaffinity),
    SCMP_SYS(sched_getparam), SCMP_SYS(sched_getscheduler), SCMP_SYS(sched_get_priority_min),
    SCMP_SYS(sched_get_priority_max), SCMP_SYS(getpriority), SCMP_SYS(getcpu), SCMP_SYS(gettid), SCMP_SYS(exit),
    SCMP_SYS(exit_group), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
    SCMP_SYS(rt_sigpending), SCMP_SYS(sigaltstack), SCMP_SYS(restart_syscall), SCMP_SYS(arch_prctl),
    // Time, random numbers, and what the machine is like.
    SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres), SCMP_SYS(clock_nanosleep), SCMP_SYS(nanosleep),
    SCMP_SYS(gettimeofday), SCMP_SYS(time), SCMP_SYS(times), SCMP_SYS(getrusage), SCMP_SYS(getrandom),
    SCMP_SYS(sysinfo), SCMP_SYS(uname), SCMP_SYS(getrlimit), SCMP_SYS(getpid), SCMP_SYS(getppid), SCMP_SYS(getpgrp),
    SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getegid),
};

/// Allows a call when this argument, as far as `mask` goes, is `value`.
static int allow_where(scmp_filter_ctx filter, int call, unsigned argument, scmp_datum_t mask, scmp_datum_t value) {
    int result = seccomp_rule_add(
        filter, SCMP_ACT_ALLOW, call, 1, SCMP_CMP64(argument, SCMP_CMP_MASKED_EQ, mask, value));
    // Calls that this architecture does not have need not be allowed.
    return result == -EDOM ? 0 : result;
}

static int fill(scmp_filter_ctx filter) {
    for (size_t index = 0; index < sizeof allowed / sizeof allowed[0]; index++) {
        int result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[index], 0);
        if (result != 0 && result != -EDOM) return result;
    }
    // Arguments of type int: what stands in the upper half of the register does not count.
    const scmp_datum_t word = 0xFFFFFFFF, writes = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND;
    const struct {
        int call;
        unsigned argument;
        scmp_datum_t mask, value;
    } rules[] = {
        // Nothing is opened for writing, or made.
        {SCMP_SYS(openat), 2, writes, O_RDONLY},
        {SCMP_SYS(open), 1, writes, O_RDONLY},
        // Threads, but no processes. A filter cannot look into clone3's arguments; libc goes back to clone.
        {SCMP_SYS(clone), 0, CLONE_THREAD, CLONE_THREAD},
        // Signals, priorities and limits of this process only.
        {SCMP_SYS(tgkill), 0, word, (scmp_datum_t)getpid()},
        {SCMP_SYS(sched_setscheduler), 0, word, 0},
        {SCMP_SYS(prlimit64), 0, word, 0},
        {SCMP_SYS(prctl), 0, word, PR_SET_NAME},
        {SCMP_SYS(prctl), 0, word, PR_GET_NAME},
        // F_SETOWN and F_SETSIG are missing: with them the kernel sends signals to others.
        {SCMP_SYS(fcntl), 1, word, F_GETFD},
        {SCMP_SYS(fcntl), 1, word, F_SETFD},
        {SCMP_SYS(fcntl), 1, word, F_GETFL},
        {SCMP_SYS(fcntl), 1, word, F_SETFL},
        {SCMP_SYS(fcntl), 1, word, F_DUPFD},
        {SCMP_SYS(fcntl), 1, word, F_DUPFD_CLOEXEC},
        {SCMP_SYS(ioctl), 1, word, TCGETS},
    };
    for (size_t index = 0; index < sizeof rules / sizeof rules[0]; index++) {
        int result = allow_where(
            filter, rules[index].call, rules[index].argument, rules[index].mask, rules[index].value);
        if (result != 0) return result;
    }
    // This thread's own priority.
    return seccomp_rule_add(
        filter, SCMP_ACT_ALLOW, SCMP_SYS(setpriority), 2, SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, word, PRIO_PROCESS),
        SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, word, 0));
}

int csandbox_confine_calls(void) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    if (filter == NULL) return -ENOMEM;
    seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    int result = fill(filter);
    if (result == 0) result = seccomp_load(filter);
    seccomp_release(filter);
    return result;
}
