#define _GNU_SOURCE
#include "Trespass.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static char possible[1024];

static void attempt(const char *name, int is_possible) {
    if (!is_possible) return;
    size_t length = strlen(possible);
    snprintf(possible + length, sizeof possible - length, "%s%s", length > 0 ? "," : "", name);
}

const char *trespass(pid_t server) {
    struct rlimit limit;
    struct sched_param parameters = {.sched_priority = 0};
    siginfo_t info;
    char path[64];
    memset(&info, 0, sizeof info);
    info.si_code = SI_QUEUE;
    // The register, which the server looks at.
    attempt("cut off", ftruncate(4, 0) == 0);
    attempt("stretch", fallocate(4, 0, 0, 1 << 20) == 0);
    // The server itself; signal 0 does nothing but ask.
    attempt("kill", kill(server, 0) == 0);
    attempt("tkill", syscall(SYS_tkill, server, 0) == 0);
    attempt("tgkill", syscall(SYS_tgkill, server, server, 0) == 0);
    attempt("rt_sigqueueinfo", syscall(SYS_rt_sigqueueinfo, server, 0, &info) == 0);
    attempt("rt_tgsigqueueinfo", syscall(SYS_rt_tgsigqueueinfo, server, server, 0, &info) == 0);
    attempt("F_SETOWN", fcntl(3, F_SETOWN, server) == 0);
    attempt("prlimit", prlimit(server, RLIMIT_NOFILE, NULL, &limit) == 0);
    attempt("setpriority", setpriority(PRIO_PROCESS, server, 19) == 0);
    attempt("sched_setscheduler", sched_setscheduler(server, SCHED_OTHER, &parameters) == 0);
    attempt("sched_setaffinity", syscall(SYS_sched_setaffinity, server, 0, NULL) == 0);
    snprintf(path, sizeof path, "/proc/%d/environ", server);
    attempt("environ", open(path, O_RDONLY) >= 0);
    // Others.
    attempt("socket", socket(AF_INET, SOCK_DGRAM, 0) >= 0);
    attempt("fork", syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) >= 0);
    attempt("memfd", memfd_create("more", 0) >= 0);
    attempt("dumpable", prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
    attempt("write", open("/tmp/rostrum-trespass", O_CREAT | O_WRONLY, 0600) >= 0);
    attempt("read", open("/etc/passwd", O_RDONLY) >= 0);
    // What it must be able to do.
    attempt("own limit", prlimit(0, RLIMIT_NOFILE, NULL, &limit) == 0);
    attempt("own signal", syscall(SYS_tgkill, getpid(), gettid(), 0) == 0);
    return possible;
}
