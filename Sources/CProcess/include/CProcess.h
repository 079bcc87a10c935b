#include <sys/prctl.h>

/* prctl is variadic, and Swift cannot call a variadic C function. */
static inline int refresh_worker_forbid_dumps(void) {
    return prctl(PR_SET_DUMPABLE, 0UL, 0UL, 0UL, 0UL);
}

/* environ is a mutable global, which Swift 6 does not let a program read; it may read a function's result. */
static inline char *const *refresh_worker_environment(void) {
    extern char **environ;
    return environ;
}
