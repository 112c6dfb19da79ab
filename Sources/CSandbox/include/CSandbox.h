/// Starting a helper process, and what it does to itself so that a hostile picture gains nothing: no network, no
/// other programs, no files but those of the system, and only so much memory.
///
/// Every function that can fail returns a negative errno.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// A connected pair of sockets that keep messages apart (SOCK_SEQPACKET), with room for `bytes` each way.
int csandbox_channel(int descriptors[2], int bytes);
/// A pipe of which reading never waits.
int csandbox_pipe(int descriptors[2]);
/// Memory of `bytes` bytes, all zero, that another process can be given; its size is sealed.
int csandbox_shared_memory(size_t bytes);
/// @return where it lies; 0 if it cannot be mapped.
uintptr_t csandbox_map(int descriptor, size_t bytes);
void csandbox_unmap(uintptr_t memory, size_t bytes);
/// Words of shared memory, each read and written whole.
void csandbox_store_word(uintptr_t memory, size_t index, uint64_t value);
uint64_t csandbox_load_word(uintptr_t memory, size_t index);

/// Starts `path` with these two descriptors as 3 and 4, and no other but standard error.
/// @param errors what is its standard error; below 0 for this process's.
/// @return its process id.
pid_t csandbox_spawn(
    const char *path, char *const arguments[], char *const environment[], int channel, int memory, int errors);
/// Whether the process has ended; then its status, and the CPU time it took.
/// @return 1 if it has ended, 0 if not.
int csandbox_ended(pid_t process, int waits, int *signal, int *status, int64_t *cpu_nanoseconds);
void csandbox_kill(pid_t process);
/// CPU time that a process has taken so far; 0 if there is none.
int64_t csandbox_cpu_nanoseconds(pid_t process);

/// CPU time that one thread of a process has taken so far, in steps of 10 ms.
int64_t csandbox_thread_cpu_nanoseconds(pid_t process, pid_t thread);

/// @return the bytes, 0 at the end, or a negative errno.
int64_t csandbox_read(int descriptor, void *bytes, size_t count);
int64_t csandbox_receive(int descriptor, void *bytes, size_t count);
int64_t csandbox_send(int descriptor, const void *bytes, size_t count);
/// Waits for nothing: -EAGAIN where there is no room.
int64_t csandbox_send_at_once(int descriptor, const void *bytes, size_t count);
/// Waits at most `milliseconds` for a message; 1 if there is one.
int csandbox_wait(int descriptor, int milliseconds);
/// Waits at most `milliseconds` for either of two descriptors; one below 0 is left out.
/// @return 1 if there is something on the first, 2 if on the second, 3 if on both.
int csandbox_wait_either(int first, int second, int milliseconds);
void csandbox_shutdown(int descriptor);
void csandbox_close(int descriptor);

/// CPU time of this process, and its resident memory.
void csandbox_usage(int64_t *cpu_nanoseconds, int64_t *resident_bytes);

/// Nobody but the superuser may look into this process's memory and surroundings from now on, and it leaves no core.
int csandbox_hide_memory(void);
/// This thread's id.
pid_t csandbox_thread(void);

// What a process does to itself. Each can be refused by the kernel; the others still hold.

/// Is the first to be ended when the machine runs out of memory. Before privileges are dropped: the file is root's then.
int csandbox_go_first(void);

/// Ends with the thread that started it, never gets privileges back, and stands so far behind its parent.
int csandbox_subordinate(pid_t parent, int niceness);
/// Lets this thread run only where no other wants to (SCHED_IDLE): those who wake take its CPU at once.
int csandbox_yield_to_all(void);
/// Lets this thread have a small share of the time, and never take a CPU from others when it wakes (SCHED_BATCH).
int csandbox_yield_to_most(void);
/// Of the system's superuser, to nobody.
int csandbox_drop_privileges(void);
/// @param threads of this user, of whatever process.
int csandbox_limit(uint64_t memory_bytes, uint64_t open_files, uint64_t threads);
/// Files below these paths can be read, no others, and none written (Landlock, Linux 5.13).
int csandbox_confine_files(const char *const paths[], size_t count);
/// Only the calls that decoding and encoding take: no sockets, programs, traces, signals to others or changes to files
/// (seccomp).
int csandbox_confine_calls(void);
