// Hooks for memory allocation: of the whole process, or of one library.
#define _GNU_SOURCE
#include "shim.h"
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

// glibc's own functions; they need no symbol lookup, which would itself allocate memory.
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static bool is_ready;
static uintptr_t caller_from, caller_to = UINTPTR_MAX;

static int find_caller(struct dl_phdr_info *library, size_t size, void *name) {
    (void)size;
    if (!strstr(library->dlpi_name, name)) return 0;
    for (int i = 0; i < library->dlpi_phnum; i++) {
        if (library->dlpi_phdr[i].p_type != PT_LOAD || !(library->dlpi_phdr[i].p_flags & PF_X)) continue;
        caller_from = library->dlpi_addr + library->dlpi_phdr[i].p_vaddr;
        caller_to = caller_from + library->dlpi_phdr[i].p_memsz;
    }
    return 1;
}

__attribute__((constructor(103))) static void begin(void) {
    const char *name = getenv("FAULTS_CALLER");
    if (name && !dl_iterate_phdr(find_caller, (void *)name)) caller_to = 0;
    is_ready = true;
}

static bool is_refused(void *caller) {
    if (!is_ready || !has_rule_for(OP_MALLOC)) return false;
    uintptr_t place = (uintptr_t)caller;
    if (place < caller_from || place >= caller_to) return false;
    if (decide(OP_MALLOC, CLASS_OTHER).action == PASS) return false;
    errno = ENOMEM;
    return true;
}

#define CALLER __builtin_return_address(0)

EXPORT void *malloc(size_t size) { return is_refused(CALLER) ? NULL : __libc_malloc(size); }
EXPORT void *calloc(size_t count, size_t size) { return is_refused(CALLER) ? NULL : __libc_calloc(count, size); }
EXPORT void *realloc(void *block, size_t size) { return is_refused(CALLER) ? NULL : __libc_realloc(block, size); }
EXPORT void *aligned_alloc(size_t alignment, size_t size) {
    return is_refused(CALLER) ? NULL : __libc_memalign(alignment, size);
}
EXPORT int posix_memalign(void **place, size_t alignment, size_t size) {
    if (is_refused(CALLER)) return ENOMEM;
    void *block = __libc_memalign(alignment, size);
    if (!block) return ENOMEM;
    *place = block;
    return 0;
}
