// Hooks for calls on files.
#define _GNU_SOURCE
#include "shim.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static const char boot_id[] = "/proc/sys/kernel/random/boot_id";

static bool is_there(const char *path) {
    return syscall(SYS_access, path, F_OK) == 0;
}

static int open_watched(const char *path, int flags, mode_t mode) {
    if (strcmp(path, boot_id) == 0 && getenv("FAULTS_BOOT_ID")) path = getenv("FAULTS_BOOT_ID");
    enum file_class class = class_of_path(path);
    bool is_new = false, is_cut = false;
    if (class != CLASS_NONE) {
        struct effect effect = decide(OP_OPEN, class);
        if (effect.action != PASS) {
            errno = effect.error;
            return -1;
        }
        // There is one of these for each thread, which would be too many to remember.
        if (class == CLASS_PROC) class = CLASS_NONE;
        is_new = flags & O_CREAT && !is_there(path);
        is_cut = flags & O_TRUNC && !is_new;
    }
    int saved = errno;
    int descriptor = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (class == CLASS_NONE || descriptor < 0) {
        remember(descriptor, NULL, CLASS_NONE);
        return descriptor;
    }
    const char *name = intern(path);
    if (is_new) record(REC_CREATE, name, 0, NULL, 0);
    if (is_cut) record(REC_TRUNCATE, name, 0, NULL, 0);
    remember(descriptor, name, class);
    errno = saved;
    return descriptor;
}

EXPORT int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return open_watched(path, flags, mode);
}

EXPORT int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return open_watched(path, flags | O_LARGEFILE, mode);
}

EXPORT int close(int descriptor) {
    remember(descriptor, NULL, CLASS_NONE);
    return (int)syscall(SYS_close, descriptor);
}

EXPORT ssize_t pread64(int descriptor, void *buffer, size_t count, off64_t offset) {
    struct effect effect = decide(OP_READ, target_of(descriptor).class);
    if (effect.action == FAIL) {
        errno = effect.error;
        return -1;
    }
    if (effect.action == SHORTEN) count /= 2;
    return syscall(SYS_pread64, descriptor, buffer, count, offset);
}

EXPORT ssize_t pread(int descriptor, void *buffer, size_t count, off_t offset) {
    return pread64(descriptor, buffer, count, offset);
}

EXPORT ssize_t pwrite64(int descriptor, const void *buffer, size_t count, off64_t offset) {
    struct target file = target_of(descriptor);
    if (file.class == CLASS_NONE || !file.path) return syscall(SYS_pwrite64, descriptor, buffer, count, offset);
    struct effect effect = decide(OP_WRITE, file.class);
    if (effect.action == FAIL) {
        errno = effect.error;
        return -1;
    }
    // Half of the bytes reach the file, then the disk is full or broken. The torn write stays torn.
    size_t written = effect.action == SHORTEN ? count / 2 : count;
    if (file.class != CLASS_SHM) record(REC_WRITE, file.path, (uint64_t)offset, buffer, written);
    ssize_t result = syscall(SYS_pwrite64, descriptor, buffer, written, offset);
    if (effect.action != SHORTEN) return result;
    errno = effect.error;
    return -1;
}

EXPORT ssize_t pwrite(int descriptor, const void *buffer, size_t count, off_t offset) {
    return pwrite64(descriptor, buffer, count, offset);
}

EXPORT ssize_t write(int descriptor, const void *buffer, size_t count) {
    struct target file = target_of(descriptor);
    if (file.class == CLASS_NONE || !file.path) return syscall(SYS_write, descriptor, buffer, count);
    struct effect effect = decide(OP_WRITE, file.class);
    if (effect.action == FAIL) {
        errno = effect.error;
        return -1;
    }
    if (effect.action == SHORTEN && count > 1) count /= 2;
    bool appends = syscall(SYS_fcntl, descriptor, F_GETFL) & O_APPEND;
    off_t offset = syscall(SYS_lseek, descriptor, 0, appends ? SEEK_END : SEEK_CUR);
    record(REC_WRITE, file.path, (uint64_t)offset, buffer, count);
    return syscall(SYS_write, descriptor, buffer, count);
}

static int synchronize(int descriptor, long call) {
    struct target file = target_of(descriptor);
    if (file.class == CLASS_NONE || !file.path) return (int)syscall(call, descriptor);
    struct effect effect = decide(OP_SYNC, file.class);
    if (effect.action == OMIT) return 0;
    if (effect.action != PASS) {
        // Like Linux: dirty pages count as written from now on, and are lost at a cut.
        record(REC_SYNC_FAILED, file.path, 0, NULL, 0);
        errno = effect.error;
        return -1;
    }
    if (!keeps_journal()) return (int)syscall(call, descriptor);
    // The journal models the disk: the machine's own disk does not have to be waited for.
    record(REC_SYNC, file.path, 0, NULL, 0);
    return 0;
}

EXPORT int fdatasync(int descriptor) { return synchronize(descriptor, SYS_fdatasync); }
EXPORT int fsync(int descriptor) { return synchronize(descriptor, SYS_fsync); }

EXPORT int ftruncate64(int descriptor, off64_t length) {
    struct target file = target_of(descriptor);
    if (file.class == CLASS_NONE || !file.path) return (int)syscall(SYS_ftruncate, descriptor, length);
    struct effect effect = decide(OP_TRUNCATE, file.class);
    if (effect.action != PASS) {
        errno = effect.error;
        return -1;
    }
    if (file.class != CLASS_SHM) record(REC_TRUNCATE, file.path, (uint64_t)length, NULL, 0);
    return (int)syscall(SYS_ftruncate, descriptor, length);
}

EXPORT int ftruncate(int descriptor, off_t length) { return ftruncate64(descriptor, length); }

EXPORT int posix_fallocate64(int descriptor, off64_t offset, off64_t length) {
    struct target file = target_of(descriptor);
    if (file.class != CLASS_NONE && file.path) {
        struct effect effect = decide(OP_WRITE, file.class);
        if (effect.action != PASS) return effect.error;
        off64_t end = syscall(SYS_lseek, descriptor, 0, SEEK_END);
        if (end < offset + length) record(REC_TRUNCATE, file.path, (uint64_t)(offset + length), NULL, 0);
    }
    return syscall(SYS_fallocate, descriptor, 0, offset, length) == 0 ? 0 : errno;
}

EXPORT int posix_fallocate(int descriptor, off_t offset, off_t length) {
    return posix_fallocate64(descriptor, offset, length);
}

EXPORT void *mmap64(void *address, size_t length, int protection, int flags, int descriptor, off64_t offset) {
    if (!(flags & MAP_ANONYMOUS)) {
        struct effect effect = decide(OP_MMAP, target_of(descriptor).class);
        if (effect.action != PASS) {
            errno = effect.error;
            return MAP_FAILED;
        }
    }
    return (void *)syscall(SYS_mmap, address, length, protection, flags, descriptor, offset);
}

EXPORT void *mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t offset) {
    return mmap64(address, length, protection, flags, descriptor, offset);
}

EXPORT int mknod(const char *path, mode_t mode, dev_t device) {
    enum file_class class = class_of_path(path);
    struct effect effect = decide(OP_OPEN, class);
    if (effect.action != PASS) {
        errno = effect.error;
        return -1;
    }
    int result = (int)syscall(SYS_mknod, path, mode, device);
    if (class != CLASS_NONE && result == 0) record(REC_CREATE, path, 0, NULL, 0);
    return result;
}

EXPORT int unlink(const char *path) {
    enum file_class class = class_of_path(path);
    struct effect effect = decide(OP_UNLINK, class);
    if (effect.action != PASS) {
        errno = effect.error;
        return -1;
    }
    int result = (int)syscall(SYS_unlink, path);
    if (class != CLASS_NONE && result == 0) record(REC_UNLINK, path, 0, NULL, 0);
    return result;
}

static int name_again(long call, enum record type, const char *from, const char *to) {
    enum file_class class = class_of_path(to);
    struct effect effect = decide(OP_RENAME, class);
    if (effect.action != PASS) {
        errno = effect.error;
        return -1;
    }
    int result = (int)syscall(call, from, to);
    if (class == CLASS_NONE || result != 0) return result;
    record(type, from, 0, to, strlen(to));
    if (type == REC_RENAME) follow_rename(from, to);
    return result;
}

EXPORT int rename(const char *from, const char *to) { return name_again(SYS_rename, REC_RENAME, from, to); }
EXPORT int link(const char *from, const char *to) { return name_again(SYS_link, REC_LINK, from, to); }
