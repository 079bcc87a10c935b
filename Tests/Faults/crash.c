// Prints one line about a crash, instead of Swift's long report: the address and the library that used it.
#define _GNU_SOURCE
#include "shim.h"
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static char stack[65536];

static void *instruction_address(void *context) {
#if defined(__x86_64__)
    return (void *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (void *)((ucontext_t *)context)->uc_mcontext.pc;
#else
    (void)context;
    return NULL;
#endif
}

static void report(int number, siginfo_t *information, void *context) {
    Dl_info library = {0};
    dladdr(instruction_address(context), &library);
    const char *name = library.dli_fname ? library.dli_fname : "?";
    const char *slash = strrchr(name, '/');
    char text[512];
    int length = snprintf(text, sizeof text, "faults: signal %d at address 0x%lx in %s\n", number,
                          number == SIGSEGV ? (unsigned long)information->si_addr : 0, slash ? slash + 1 : name);
    ssize_t ignored = syscall(SYS_write, 2, text, (size_t)length);
    (void)ignored;
    // With SA_RESETHAND the same instruction now ends the process.
}

__attribute__((constructor(104))) static void begin(void) {
    if (!getenv("FAULTS_REPORT_CRASHES")) return;
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternate, NULL);
    struct sigaction action = {.sa_sigaction = report, .sa_flags = SA_SIGINFO | SA_RESETHAND};
    int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) sigaction(numbers[i], &action, NULL);
}
