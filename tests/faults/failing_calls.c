/* Calls of the C library that fail on request: preloaded into a process, so that every library in it meets a full or a
   broken disk, whether it writes through Python, C, C++ or Rust. Counted are calls that change a file below a folder.

   A tmpfs of a few kilobytes would need the rights to mount one, and fails at few places; this fails at every one. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[PATH_MAX];
static long fails_at, calls;
static int number, stays;

/* From the `at`-th call on, counted from 1, or at that call alone, fail with an errno; 0: never. */
void fail_calls(const char *below, long at, int error, int from_then_on) {
    strncpy(folder, below, sizeof folder - 1);
    fails_at = at;
    number = error;
    stays = from_then_on;
    calls = 0;
}

long counted_calls(void) { return calls; }

static int is_below(const char *path) {
    return folder[0] && path && strncmp(path, folder, strlen(folder)) == 0;
}

static int is_ours(int descriptor) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, sizeof path - 1);
    path[size > 0 ? size : 0] = 0;
    return is_below(path);
}

/* Count a call. `grows`: it needs room on the disk, of which a full one has none from then on. */
static int fails(int grows) {
    calls++;
    if (fails_at == 0 || (stays ? calls < fails_at || !grows : calls != fails_at))
        return 0;
    errno = number;
    return 1;
}

#define REAL(name) __typeof__(name) *real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

ssize_t write(int descriptor, const void *data, size_t size) {
    REAL(write);
    return is_ours(descriptor) && fails(1) ? -1 : real(descriptor, data, size);
}

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    REAL(writev);
    return is_ours(descriptor) && fails(1) ? -1 : real(descriptor, parts, count);
}

ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t place) {
    REAL(pwrite64);
    return is_ours(descriptor) && fails(1) ? -1 : real(descriptor, data, size, place);
}

ssize_t pwrite(int descriptor, const void *data, size_t size, off_t place) {
    REAL(pwrite);
    return is_ours(descriptor) && fails(1) ? -1 : real(descriptor, data, size, place);
}

size_t fwrite(const void *data, size_t size, size_t count, FILE *file) {
    REAL(fwrite);
    return is_ours(fileno(file)) && fails(1) ? 0 : real(data, size, count, file);
}

int fflush(FILE *file) {
    REAL(fflush);
    return file && is_ours(fileno(file)) && fails(1) ? EOF : real(file);
}

int fsync(int descriptor) {
    REAL(fsync);
    return is_ours(descriptor) && fails(0) ? -1 : real(descriptor);
}

int ftruncate64(int descriptor, off64_t size) {
    REAL(ftruncate64);
    return is_ours(descriptor) && fails(1) ? -1 : real(descriptor, size);
}

int ftruncate(int descriptor, off_t size) {
    REAL(ftruncate);
    return is_ours(descriptor) && fails(1) ? -1 : real(descriptor, size);
}

int rename(const char *from, const char *to) {
    REAL(rename);
    return is_below(to) && fails(0) ? -1 : real(from, to);
}

int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    return is_below(path) && fails(1) ? -1 : real(path, mode);
}

static int opened_for_writing(const char *path, int flags) {
    return (flags & (O_WRONLY | O_RDWR)) && is_below(path);
}

int open64(const char *path, int flags, ...) {
    REAL(open64);
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    return opened_for_writing(path, flags) && fails(1) ? -1 : real(path, flags, mode);
}

int open(const char *path, int flags, ...) {
    REAL(open);
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    return opened_for_writing(path, flags) && fails(1) ? -1 : real(path, flags, mode);
}

FILE *fopen64(const char *path, const char *mode) {
    REAL(fopen64);
    return strpbrk(mode, "wa+") && is_below(path) && fails(1) ? NULL : real(path, mode);
}

FILE *fopen(const char *path, const char *mode) {
    REAL(fopen);
    return strpbrk(mode, "wa+") && is_below(path) && fails(1) ? NULL : real(path, mode);
}
