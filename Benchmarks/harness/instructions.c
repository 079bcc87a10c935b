// Valgrind writes into the mask that sigsuspend gets. That of libdispatch is in read-only memory, so this passes a
// copy. It is preloaded when the worker runs under Valgrind.
#define _GNU_SOURCE
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

int sigsuspend(const sigset_t *mask)
{
    sigset_t copy = *mask;
    return syscall(SYS_rt_sigsuspend, &copy, _NSIG / 8);
}
