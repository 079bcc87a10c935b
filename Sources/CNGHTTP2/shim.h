#include <malloc.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>

// Memory for nghttp2 that is overwritten before it is freed: its frames and header fields hold tokens.

static inline void *cnghttp2_malloc(size_t size, void *unused) {
    (void)unused;
    return malloc(size);
}

static inline void *cnghttp2_calloc(size_t count, size_t size, void *unused) {
    (void)unused;
    return calloc(count, size);
}

static inline void cnghttp2_free(void *memory, void *unused) {
    (void)unused;
    if (memory == NULL) return;
    explicit_bzero(memory, malloc_usable_size(memory));
    free(memory);
}

static inline void *cnghttp2_realloc(void *memory, size_t size, void *unused) {
    if (memory == NULL) return malloc(size);
    void *larger = malloc(size);
    if (larger == NULL) return NULL;
    size_t former = malloc_usable_size(memory);
    memcpy(larger, memory, former < size ? former : size);
    cnghttp2_free(memory, unused);
    return larger;
}

static inline nghttp2_mem cnghttp2_wiped_memory(void) {
    nghttp2_mem memory = {NULL, cnghttp2_malloc, cnghttp2_free, cnghttp2_calloc, cnghttp2_realloc};
    return memory;
}
