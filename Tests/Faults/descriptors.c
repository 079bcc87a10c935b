// The descriptors of files below FAULTS_ROOT, and the journal of their changes.
#define _GNU_SOURCE
#include "shim.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST_DESCRIPTORS = 65536, MOST_PATHS = 1024 };

static char root[4096];
static size_t root_length;
static struct target targets[MOST_DESCRIPTORS];
static const char *paths[MOST_PATHS];
static int path_count;
static char arena[1 << 18];
static size_t arena_used;
static int lock;
static int journal = -1;

__attribute__((constructor(102))) static void begin(void) {
    const char *folder = getenv("FAULTS_ROOT");
    if (folder && strlen(folder) < sizeof root) {
        strcpy(root, folder);
        root_length = strlen(root);
    }
    const char *path = getenv("FAULTS_JOURNAL");
    if (path) {
        int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        // High numbers do not interfere with programs that rely on low ones.
        journal = (int)syscall(SYS_fcntl, file, F_DUPFD_CLOEXEC, 900);
        syscall(SYS_close, file);
        if (journal < 0) _exit(99);
    }
}

enum file_class class_of_path(const char *path) {
    if (path && strncmp(path, "/proc/", 6) == 0) return CLASS_PROC;
    if (!root_length || !path || strncmp(path, root, root_length) != 0) return CLASS_NONE;
    if (path[root_length] == 0 || strcmp(path + root_length, "/") == 0) return CLASS_FOLDER;
    if (path[root_length] != '/') return CLASS_NONE;
    const char *name = strrchr(path, '/') + 1;
    if (strstr(name, "lease")) return CLASS_LEASE;
    if (strstr(name, ".unsaved-") || strstr(name, ".writing-")) return CLASS_SPILL;
    if (strstr(name, ".reserve")) return CLASS_RESERVE;
    if (strstr(name, "keys")) return CLASS_KEYS;
    size_t length = strlen(name);
    if (length > 4 && strcmp(name + length - 4, "-wal") == 0) return CLASS_WAL;
    if (length > 4 && strcmp(name + length - 4, "-shm") == 0) return CLASS_SHM;
    if (length > 8 && strcmp(name + length - 8, "-journal") == 0) return CLASS_JOURNAL;
    if (length > 7 && strcmp(name + length - 7, ".sqlite") == 0) return CLASS_DB;
    return CLASS_OTHER;
}

// Returns a permanent copy of the path: there are many descriptors, but few paths.
const char *intern(const char *path) {
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) {}
    const char *copy = NULL;
    for (int i = 0; i < path_count && !copy; i++)
        if (strcmp(paths[i], path) == 0) copy = paths[i];
    size_t size = strlen(path) + 1;
    if (!copy) {
        if (path_count == MOST_PATHS || arena_used + size > sizeof arena) _exit(99);
        copy = memcpy(arena + arena_used, path, size);
        arena_used += size;
        paths[path_count++] = copy;
    }
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
    return copy;
}

void remember(int descriptor, const char *path, enum file_class class) {
    if (descriptor < 0 || descriptor >= MOST_DESCRIPTORS) return;
    targets[descriptor] = (struct target){path, class};
}

// Open descriptors follow their file to the new name.
void follow_rename(const char *from, const char *to) {
    from = intern(from);
    to = intern(to);
    for (int descriptor = 0; descriptor < MOST_DESCRIPTORS; descriptor++)
        if (targets[descriptor].path == from) targets[descriptor].path = to;
}

struct target target_of(int descriptor) {
    if (descriptor < 0 || descriptor >= MOST_DESCRIPTORS) return (struct target){NULL, CLASS_NONE};
    return targets[descriptor];
}

bool keeps_journal(void) {
    return journal >= 0;
}

void record(enum record type, const char *path, uint64_t offset, const void *data, size_t length) {
    if (journal < 0) return;
    struct __attribute__((packed)) {
        uint8_t type, unused;
        uint16_t path_length;
        uint32_t length;
        uint64_t offset;
    } head = {(uint8_t)type, 0, (uint16_t)strlen(path), (uint32_t)length, offset};
    struct iovec parts[] = {{&head, sizeof head}, {(void *)path, head.path_length}, {(void *)data, length}};
    // One call on a file in append mode, so that records of several threads and processes do not mix.
    if (syscall(SYS_writev, journal, parts, 3) != (ssize_t)(sizeof head + head.path_length + length)) _exit(99);
}
