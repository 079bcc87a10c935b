#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/types.h>

/*
 Takes the place of the C library's function in the whole program, for the sake of one caller. While work is queued,
 Dispatch reads /proc/THREAD/stat of its threads every second, and ends the process if the file cannot be opened
 (src/event/workqueue.c of swift-corelibs-libdispatch). Results in memory would be lost only because no descriptor is
 free. It gets a number that is no descriptor instead: its read and close fail, which it ignores.
 */
int open(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    static int (*next)(const char *, int, ...);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "open");
    int descriptor = next(path, flags, mode);
    if (descriptor >= 0 || (errno != EMFILE && errno != ENFILE)) return descriptor;
    size_t length = strlen(path);
    int is_thread = strncmp(path, "/proc/", 6) == 0 && length > 5 && strcmp(path + length - 5, "/stat") == 0;
    return is_thread ? INT_MAX : -1;
}
