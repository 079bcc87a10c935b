#include <sys/resource.h>
#include <unistd.h>

/*
 Ends a process that has too little address space even to say so: with 40 MiB the libraries are loaded, and the first
 allocation of Swift's runtime traps without a word. It runs before that runtime, and allocates nothing.
 */
__attribute__((constructor(101))) static void refresh_worker_check_address_space(void) {
    enum { smallest = 64 << 20, configuration_error = 78 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur >= smallest) return;
    static const char text[] =
        "refresh-worker: the limit of address space (RLIMIT_AS) is below 64 MiB: run: ulimit -v unlimited\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(configuration_error);
    _exit(configuration_error);
}
