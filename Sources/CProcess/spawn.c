#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "CProcess.h"

/* The program gets no terminal and a process group of its own, which a signal can reach as a whole. It inherits the
   three descriptors and no other, and handles every signal in the default way, whatever this process has set. */
static int set_attributes(posix_spawnattr_t *attributes) {
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    int failed = posix_spawnattr_setsigdefault(attributes, &all);
    if (!failed) failed = posix_spawnattr_setsigmask(attributes, &none);
    short flags = POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
    return failed ? failed : posix_spawnattr_setflags(attributes, flags);
}

static int set_actions(posix_spawn_file_actions_t *actions, int input, int output, int error) {
    int failed = posix_spawn_file_actions_adddup2(actions, input, 0);
    if (!failed) failed = posix_spawn_file_actions_adddup2(actions, output, 1);
    if (!failed) failed = posix_spawn_file_actions_adddup2(actions, error, 2);
    return failed ? failed : posix_spawn_file_actions_addclosefrom_np(actions, 3);
}

/* A parent might have left SIGCHLD ignored. The kernel would then drop the exit code of the program. */
static void keep_exit_codes(void) {
    struct sigaction action;
    if (sigaction(SIGCHLD, 0, &action) == 0 && action.sa_handler == SIG_IGN) signal(SIGCHLD, SIG_DFL);
}

int refresh_worker_spawn(
    pid_t *process, char *const arguments[], char *const environment[], int input, int output, int error
) {
    posix_spawnattr_t attributes;
    int failed = posix_spawnattr_init(&attributes);
    if (failed) return failed;
    posix_spawn_file_actions_t actions;
    failed = posix_spawn_file_actions_init(&actions);
    if (failed) {
        posix_spawnattr_destroy(&attributes);
        return failed;
    }
    keep_exit_codes();
    failed = set_attributes(&attributes);
    if (!failed) failed = set_actions(&actions, input, output, error);
    if (!failed) failed = posix_spawnp(process, arguments[0], &actions, &attributes, arguments, environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return failed;
}

int refresh_worker_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

int refresh_worker_watch(pid_t process) { return pidfd_open(process, 0); }

/* Since Linux 6.3 an administrator can demand that such files are not executable. Older kernels do not know the flag. */
int refresh_worker_memory_file(void) {
    enum { not_executable = 8 };
    int descriptor = memfd_create("refresh-worker", MFD_CLOEXEC | not_executable);
    if (descriptor < 0 && errno == EINVAL) descriptor = memfd_create("refresh-worker", MFD_CLOEXEC);
    return descriptor;
}
