// For programs that load this library (LD_PRELOAD): sets the wall clock wrong by CLOCK_WRONG_BY seconds, and the boot
// clock ahead by BOOT_CLOCK_AHEAD_BY seconds.
//
// libfaketime cannot be used: it also changes the timers of the monotonic clock (timerfd_settime), which a wrong clock
// does not.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long boot_ahead_by(void) {
    const char *seconds = getenv("BOOT_CLOCK_AHEAD_BY");
    return seconds ? atol(seconds) : 0;
}

static long wrong_by(void) {
    const char *seconds = getenv("CLOCK_WRONG_BY");
    return seconds ? atol(seconds) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *point) {
    long result = syscall(SYS_clock_gettime, clock, point);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) point->tv_sec += wrong_by();
    if (result == 0 && clock == CLOCK_BOOTTIME) point->tv_sec += boot_ahead_by();
    return (int)result;
}

int gettimeofday(struct timeval *restrict point, void *restrict zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    point->tv_sec = now.tv_sec;
    point->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *place) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (place) *place = now.tv_sec;
    return now.tv_sec;
}
