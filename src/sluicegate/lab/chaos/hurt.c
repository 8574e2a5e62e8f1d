/* Preloaded into a driver and its child processes: steps their wall clock, slows their disk and lets it fail.

   $SLUICEGATE_HURT names a file of three 8-byte integers: the offset of the wall clock (nanoseconds), the delay added
   to every open with O_CREAT, rename and sync of a file (nanoseconds), and the error (errno) that these calls fail with
   for paths below $SLUICEGATE_HURT_BELOW, or 0. The monotonic clock, which sleeps and timeouts
   use, is not changed, just as a step of a machine's wall clock does not change it. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t none[3] = {0, 0, 0};
static volatile const int64_t *hurt = none;
static const char *below = "";

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("SLUICEGATE_HURT");
    if (getenv("SLUICEGATE_HURT_BELOW")) below = getenv("SLUICEGATE_HURT_BELOW");
    int file = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *seen = mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    if (seen != MAP_FAILED) hurt = seen;
}

static int stepped(struct timespec *at) {
    int64_t all = (int64_t)at->tv_sec * 1000000000 + at->tv_nsec + hurt[0];
    at->tv_sec = all / 1000000000;
    at->tv_nsec = all % 1000000000;
    return 0;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, at);
    if (failed || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
    return stepped(at);
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}

static void slowly(void) {
    int64_t ns = hurt[1];
    struct timespec pause = {ns / 1000000000, ns % 1000000000};
    if (ns > 0) syscall(SYS_nanosleep, &pause, NULL);
}

static int fails(const char *path) {
    slowly();
    if (!hurt[2] || strncmp(path, below, strlen(below))) return 0;
    errno = (int)hurt[2];
    return 1;
}

static int sync_fails(int file) {
    char link[64], path[4096] = "";
    if (hurt[2]) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", file);
        if (readlink(link, path, sizeof path - 1) < 0) path[0] = 0;
    }
    return fails(path);
}

int fsync(int file) { return sync_fails(file) ? -1 : (int)syscall(SYS_fsync, file); }

int fdatasync(int file) { return sync_fails(file) ? -1 : (int)syscall(SYS_fdatasync, file); }

int rename(const char *from, const char *to) { return fails(to) ? -1 : (int)syscall(SYS_rename, from, to); }

static int opened(int folder, const char *path, int flags, mode_t mode) {
    if ((flags & O_CREAT) && fails(path)) return -1;
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

#define MODE(flags)                                         \
    mode_t mode = 0;                                        \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                  \
        va_list rest;                                       \
        va_start(rest, flags);                              \
        mode = (mode_t)va_arg(rest, int);                   \
        va_end(rest);                                       \
    }

int open(const char *path, int flags, ...) { MODE(flags) return opened(AT_FDCWD, path, flags, mode); }

int open64(const char *path, int flags, ...) { MODE(flags) return opened(AT_FDCWD, path, flags | O_LARGEFILE, mode); }

int openat(int folder, const char *path, int flags, ...) { MODE(flags) return opened(folder, path, flags, mode); }

int openat64(int folder, const char *path, int flags, ...) {
    MODE(flags) return opened(folder, path, flags | O_LARGEFILE, mode);
}
