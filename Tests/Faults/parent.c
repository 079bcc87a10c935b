// Ends the process together with the one that started it.
#include "shim.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

// A worker that outlived an interrupted trial would ask the token server of a later one, which can get the same port.
__attribute__((constructor(105))) static void end_with_parent(void) {
    const char *parent = getenv("FAULTS_PARENT");
    if (!parent) return;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) _exit(99);
    // The parent might have ended before the call.
    if (getppid() != (pid_t)strtol(parent, NULL, 10)) _exit(99);
}
