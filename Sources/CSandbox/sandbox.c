#define _GNU_SOURCE
#include "CSandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int csandbox_subordinate(pid_t parent, int niceness) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -errno;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return -errno;
    // The parent may have gone before it was asked for.
    if (parent > 0 && getppid() != parent) return -ESRCH;
    errno = 0;
    return nice(niceness) == -1 && errno != 0 ? -errno : 0;
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

int csandbox_limit(uint64_t memory_bytes, uint64_t open_files) {
    int result = set_limit(RLIMIT_CORE, 0);
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

static const int forbidden[] = {
    // Other processes and machines.
    SCMP_SYS(socket), SCMP_SYS(socketpair), SCMP_SYS(connect), SCMP_SYS(bind), SCMP_SYS(listen),
    SCMP_SYS(accept), SCMP_SYS(accept4), SCMP_SYS(ptrace), SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev), SCMP_SYS(pidfd_open), SCMP_SYS(pidfd_getfd), SCMP_SYS(pidfd_send_signal),
    SCMP_SYS(kill), SCMP_SYS(tkill), SCMP_SYS(shmget), SCMP_SYS(shmat), SCMP_SYS(msgget), SCMP_SYS(semget),
    SCMP_SYS(mq_open),
    // Other programs.
    SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(fork), SCMP_SYS(vfork),
    // Files.
    SCMP_SYS(creat), SCMP_SYS(openat2), SCMP_SYS(open_by_handle_at), SCMP_SYS(unlink), SCMP_SYS(unlinkat),
    SCMP_SYS(rename), SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(mkdir), SCMP_SYS(mkdirat),
    SCMP_SYS(rmdir), SCMP_SYS(link), SCMP_SYS(linkat), SCMP_SYS(symlink), SCMP_SYS(symlinkat),
    SCMP_SYS(truncate), SCMP_SYS(chmod), SCMP_SYS(fchmodat), SCMP_SYS(chown), SCMP_SYS(lchown),
    SCMP_SYS(fchownat), SCMP_SYS(mknod), SCMP_SYS(mknodat), SCMP_SYS(setxattr), SCMP_SYS(utimensat),
    SCMP_SYS(mount), SCMP_SYS(umount2), SCMP_SYS(pivot_root), SCMP_SYS(chroot), SCMP_SYS(swapon),
    // The kernel's less trodden ways.
    SCMP_SYS(setns), SCMP_SYS(unshare), SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(userfaultfd),
    SCMP_SYS(io_uring_setup), SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register), SCMP_SYS(keyctl),
    SCMP_SYS(add_key), SCMP_SYS(request_key), SCMP_SYS(init_module), SCMP_SYS(finit_module),
    SCMP_SYS(delete_module), SCMP_SYS(kexec_load), SCMP_SYS(reboot), SCMP_SYS(settimeofday),
    SCMP_SYS(clock_settime), SCMP_SYS(personality), SCMP_SYS(vmsplice), SCMP_SYS(fanotify_init),
};

static int fill(scmp_filter_ctx filter) {
    for (size_t index = 0; index < sizeof forbidden / sizeof forbidden[0]; index++) {
        int result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), forbidden[index], 0);
        // Calls that this architecture does not have need not be forbidden.
        if (result != 0 && result != -EDOM) return result;
    }
    // Nothing is opened for writing, or made.
    const struct {
        scmp_datum_t mask, value;
    } modes[] = {{O_ACCMODE, O_WRONLY}, {O_ACCMODE, O_RDWR}, {O_CREAT, O_CREAT}};
    for (size_t index = 0; index < sizeof modes / sizeof modes[0]; index++) {
        int result = seccomp_rule_add(
            filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(openat), 1,
            SCMP_A2(SCMP_CMP_MASKED_EQ, modes[index].mask, modes[index].value));
        if (result == 0)
            result = seccomp_rule_add(
                filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(open), 1,
                SCMP_A1(SCMP_CMP_MASKED_EQ, modes[index].mask, modes[index].value));
        if (result != 0 && result != -EDOM) return result;
    }
    // Threads, but no processes. The filter cannot look into clone3's arguments; libc goes back to clone.
    int result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    if (result != 0 && result != -EDOM) return result;
    return seccomp_rule_add(
        filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
}

int csandbox_confine_calls(void) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (filter == NULL) return -ENOMEM;
    seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    int result = fill(filter);
    if (result == 0) result = seccomp_load(filter);
    seccomp_release(filter);
    return result;
}
