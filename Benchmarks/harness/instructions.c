// Valgrind writes into the mask that sigsuspend is given, and libdispatch's lies in memory that cannot be written:
// a copy can be. Preloaded where the worker runs under Valgrind.
#define _GNU_SOURCE
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

int sigsuspend(const sigset_t *mask)
{
    sigset_t copy = *mask;
    return syscall(SYS_rt_sigsuspend, &copy, _NSIG / 8);
}
