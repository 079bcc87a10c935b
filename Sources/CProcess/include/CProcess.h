#ifndef REFRESH_WORKER_CPROCESS_H
#define REFRESH_WORKER_CPROCESS_H

#include <sys/prctl.h>
#include <sys/types.h>

/* prctl is variadic, and Swift cannot call a variadic C function. */
static inline int refresh_worker_forbid_dumps(void) {
    return prctl(PR_SET_DUMPABLE, 0UL, 0UL, 0UL, 0UL);
}

/* environ is a mutable global, which Swift 6 does not let a program read; it may read a function's result. */
static inline char *const *refresh_worker_environment(void) {
    extern char **environ;
    return environ;
}

/* Starts a program, found in PATH unless its name has a slash, as the leader of a session of its own. Returns 0 or the
   errno. The three descriptors, which must not be below 3, become its standard ones. */
int refresh_worker_spawn(
    pid_t *process, char *const arguments[], char *const environment[], int input, int output, int error
);

/* Makes a pipe that no other program inherits. Returns 0 or -1. */
int refresh_worker_pipe(int ends[2]);

/* Returns a descriptor that is readable once the process has ended, or -1. */
int refresh_worker_watch(pid_t process);

/* Returns the descriptor of an empty file in memory, without a name, or -1. */
int refresh_worker_memory_file(void);

#endif
