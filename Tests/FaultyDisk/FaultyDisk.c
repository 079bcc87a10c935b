#include "FaultyDisk.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { page_size = 4096, max_file_size = 64 << 20, max_files = 16, max_name_length = 1024 };

/// One file of the folder: its content on the disk, and the pages that the kernel has not written yet.
struct image {
    char name[max_name_length];
    unsigned char *bytes;
    unsigned char *is_dirty;
    sqlite3_int64 size;
};

struct faulty_file {
    sqlite3_file base;
    struct image *image;
    sqlite3_file *real;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sqlite3_vfs *unix_vfs;
static sqlite3_vfs faulty;
static char folder[max_name_length];
static struct image images[max_files];
static int syncs, syncs_to_pass, syncs_to_fail, open_error, reads_to_garble, reads_to_pass, reads_to_fail;
static char sync_suffix[64], write_suffix[64], read_suffix[64], failing_suffix[64], read_only_suffix[64];
static void (*write_hook)(void *);
static void *write_context;
/// The number of bytes that the files can have together, or -1.
static long long capacity = -1;

static int has_suffix(const char *name, const char *suffix) {
    size_t length = strlen(name), end = strlen(suffix);
    return length >= end && strcmp(name + length - end, suffix) == 0;
}

static sqlite3_file *real(sqlite3_file *file) { return ((struct faulty_file *)file)->real; }

static void release(struct image *image) {
    free(image->bytes);
    free(image->is_dirty);
    memset(image, 0, sizeof *image);
}

static struct image *find(const char *name, int creates) {
    struct image *unused = NULL;
    for (int i = 0; i < max_files; i++) {
        if (images[i].bytes && strcmp(images[i].name, name) == 0) return &images[i];
        if (!images[i].bytes && !unused) unused = &images[i];
    }
    if (!creates || !unused) return NULL;
    snprintf(unused->name, sizeof unused->name, "%s", name);
    unused->bytes = calloc(1, max_file_size);
    unused->is_dirty = calloc(1, max_file_size / page_size);
    unused->size = 0;
    return unused;
}

static int faulty_close(sqlite3_file *file) {
    return real(file)->pMethods->xClose(real(file));
}

static int faulty_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
    pthread_mutex_lock(&lock);
    int fails = 0;
    if ((reads_to_pass > 0 || reads_to_fail > 0) && has_suffix(((struct faulty_file *)file)->image->name, failing_suffix)) {
        if (reads_to_pass > 0) reads_to_pass--;
        else { reads_to_fail--; fails = 1; }
    }
    pthread_mutex_unlock(&lock);
    if (fails) {
        errno = EIO;
        // The unix VFS's result for EIO.
        return SQLITE_IOERR_CORRUPTFS;
    }
    int result = real(file)->pMethods->xRead(real(file), bytes, count, offset);
    pthread_mutex_lock(&lock);
    if (reads_to_garble > 0 && has_suffix(((struct faulty_file *)file)->image->name, read_suffix)) {
        reads_to_garble--;
        memset(bytes, 0, (size_t)count);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static long long size_of(const struct image *image) {
    struct stat facts;
    return image->bytes && stat(image->name, &facts) == 0 ? facts.st_size : 0;
}

static long long used_space(void) {
    long long sum = 0;
    for (int i = 0; i < max_files; i++) sum += size_of(&images[i]);
    return sum;
}

static int fits(const struct image *image, sqlite3_int64 end) {
    pthread_mutex_lock(&lock);
    long long growth = end - size_of(image);
    int answer = capacity < 0 || growth <= 0 || used_space() + growth <= capacity;
    pthread_mutex_unlock(&lock);
    return answer;
}

static int faulty_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
    struct image *image = ((struct faulty_file *)file)->image;
    if (offset + count > max_file_size || !fits(image, offset + count)) return SQLITE_FULL;
    if (write_hook && has_suffix(image->name, write_suffix)) write_hook(write_context);
    int result = real(file)->pMethods->xWrite(real(file), bytes, count, offset);
    pthread_mutex_lock(&lock);
    for (sqlite3_int64 page = offset / page_size; count > 0 && page <= (offset + count - 1) / page_size; page++)
        if (image->is_dirty) image->is_dirty[page] = 1;
    pthread_mutex_unlock(&lock);
    return result;
}

static int faulty_truncate(sqlite3_file *file, sqlite3_int64 size) {
    return real(file)->pMethods->xTruncate(real(file), size);
}

static int faulty_sync(sqlite3_file *file, int flags) {
    struct image *image = ((struct faulty_file *)file)->image;
    int result = SQLITE_OK;
    pthread_mutex_lock(&lock);
    syncs++;
    int fails = 0;
    // An image without bytes belongs to an earlier test.
    if (image->bytes && has_suffix(image->name, sync_suffix) && (syncs_to_pass > 0 || syncs_to_fail > 0)) {
        if (syncs_to_pass > 0) syncs_to_pass--;
        else { syncs_to_fail--; fails = 1; }
    }
    if (fails) {
        memset(image->is_dirty, 0, max_file_size / page_size);
        result = SQLITE_IOERR_FSYNC;
    } else if (image->bytes) {
        sqlite3_int64 size = 0;
        result = real(file)->pMethods->xFileSize(real(file), &size);
        if (size < image->size) memset(image->bytes + size, 0, (size_t)(image->size - size));
        for (sqlite3_int64 page = 0; result == SQLITE_OK && page * page_size < size; page++) {
            if (!image->is_dirty[page]) continue;
            sqlite3_int64 rest = size - page * page_size;
            int count = (int)(rest < page_size ? rest : page_size);
            result = real(file)->pMethods->xRead(real(file), image->bytes + page * page_size, count, page * page_size);
            image->is_dirty[page] = 0;
        }
        image->size = size;
    }
    (void)flags;
    pthread_mutex_unlock(&lock);
    return result;
}

static int faulty_size(sqlite3_file *file, sqlite3_int64 *size) {
    return real(file)->pMethods->xFileSize(real(file), size);
}
static int faulty_lock(sqlite3_file *file, int level) { return real(file)->pMethods->xLock(real(file), level); }
static int faulty_unlock(sqlite3_file *file, int level) { return real(file)->pMethods->xUnlock(real(file), level); }
static int faulty_reserved(sqlite3_file *file, int *answer) {
    return real(file)->pMethods->xCheckReservedLock(real(file), answer);
}
static int faulty_control(sqlite3_file *file, int operation, void *argument) {
    return real(file)->pMethods->xFileControl(real(file), operation, argument);
}
static int faulty_sector(sqlite3_file *file) { return real(file)->pMethods->xSectorSize(real(file)); }
static int faulty_characteristics(sqlite3_file *file) {
    return real(file)->pMethods->xDeviceCharacteristics(real(file));
}
static int faulty_map(sqlite3_file *file, int region, int size, int extends, void volatile **bytes) {
    return real(file)->pMethods->xShmMap(real(file), region, size, extends, bytes);
}
static int faulty_shm_lock(sqlite3_file *file, int offset, int count, int flags) {
    return real(file)->pMethods->xShmLock(real(file), offset, count, flags);
}
static void faulty_barrier(sqlite3_file *file) { real(file)->pMethods->xShmBarrier(real(file)); }
static int faulty_unmap(sqlite3_file *file, int deletes) {
    return real(file)->pMethods->xShmUnmap(real(file), deletes);
}

static const sqlite3_io_methods methods = {
    2, faulty_close, faulty_read, faulty_write, faulty_truncate, faulty_sync, faulty_size, faulty_lock, faulty_unlock,
    faulty_reserved, faulty_control, faulty_sector, faulty_characteristics, faulty_map, faulty_shm_lock, faulty_barrier,
    faulty_unmap, NULL, NULL,
};

static int faulty_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags) {
    (void)vfs;
    pthread_mutex_lock(&lock);
    int is_ours = folder[0] && name && strncmp(name, folder, strlen(folder)) == 0;
    int error = is_ours ? open_error : 0;
    struct image *image = is_ours && !error ? find(name, 1) : NULL;
    pthread_mutex_unlock(&lock);
    if (error) {
        errno = error;
        file->pMethods = NULL;
        return SQLITE_CANTOPEN;
    }
    if (!image) return unix_vfs->xOpen(unix_vfs, name, file, flags, out_flags);
    struct faulty_file *opened = (struct faulty_file *)file;
    opened->image = image;
    opened->real = (sqlite3_file *)(opened + 1);
    if (read_only_suffix[0] && has_suffix(name, read_only_suffix))
        flags = (flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) | SQLITE_OPEN_READONLY;
    int result = unix_vfs->xOpen(unix_vfs, name, opened->real, flags, out_flags);
    opened->base.pMethods = result == SQLITE_OK ? &methods : NULL;
    return result;
}

static int faulty_delete(sqlite3_vfs *vfs, const char *name, int syncs_folder) {
    (void)vfs;
    pthread_mutex_lock(&lock);
    struct image *image = find(name, 0);
    if (image) {
        memset(image->bytes, 0, max_file_size);
        memset(image->is_dirty, 0, max_file_size / page_size);
        image->size = 0;
    }
    pthread_mutex_unlock(&lock);
    return unix_vfs->xDelete(unix_vfs, name, syncs_folder);
}

static int faulty_last_error(sqlite3_vfs *vfs, int count, char *text) {
    (void)vfs;
    if (open_error) return open_error;
    return unix_vfs->xGetLastError(unix_vfs, count, text);
}

void faulty_disk_install(void) {
    pthread_mutex_lock(&lock);
    int is_installed = unix_vfs != NULL;
    if (!is_installed) {
        unix_vfs = sqlite3_vfs_find(NULL);
        faulty = *unix_vfs;
        faulty.zName = "faulty disk";
        faulty.szOsFile = (int)sizeof(struct faulty_file) + unix_vfs->szOsFile;
        faulty.xOpen = faulty_open;
        faulty.xDelete = faulty_delete;
        faulty.xGetLastError = faulty_last_error;
        faulty.pNext = NULL;
    }
    pthread_mutex_unlock(&lock);
    if (!is_installed) sqlite3_vfs_register(&faulty, 1);
}

void faulty_disk_begin(const char *path) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < max_files; i++) release(&images[i]);
    snprintf(folder, sizeof folder, "%s", path);
    syncs = syncs_to_pass = syncs_to_fail = open_error = reads_to_garble = reads_to_pass = reads_to_fail = 0;
    read_only_suffix[0] = 0;
    write_hook = NULL;
    capacity = -1;
    pthread_mutex_unlock(&lock);
}

void faulty_disk_end(void) {
    pthread_mutex_lock(&lock);
    folder[0] = 0;
    syncs_to_pass = syncs_to_fail = open_error = reads_to_garble = reads_to_pass = reads_to_fail = 0;
    read_only_suffix[0] = 0;
    write_hook = NULL;
    capacity = -1;
    pthread_mutex_unlock(&lock);
}

void faulty_disk_limit_space(long long more) {
    pthread_mutex_lock(&lock);
    capacity = more < 0 ? -1 : used_space() + more;
    pthread_mutex_unlock(&lock);
}

long long faulty_disk_free_space(void) {
    pthread_mutex_lock(&lock);
    long long answer = capacity - used_space();
    pthread_mutex_unlock(&lock);
    return answer > 0 ? answer : 0;
}

void faulty_disk_fail_syncs(const char *suffix, int first, int count) {
    pthread_mutex_lock(&lock);
    snprintf(sync_suffix, sizeof sync_suffix, "%s", suffix);
    syncs_to_pass = first;
    syncs_to_fail = count;
    pthread_mutex_unlock(&lock);
}

int faulty_disk_syncs(void) {
    pthread_mutex_lock(&lock);
    int answer = syncs;
    pthread_mutex_unlock(&lock);
    return answer;
}

void faulty_disk_before_write(const char *suffix, void (*hook)(void *), void *context) {
    pthread_mutex_lock(&lock);
    snprintf(write_suffix, sizeof write_suffix, "%s", suffix);
    write_context = context;
    write_hook = hook;
    pthread_mutex_unlock(&lock);
}

void faulty_disk_fail_opens(int error) {
    pthread_mutex_lock(&lock);
    open_error = error;
    pthread_mutex_unlock(&lock);
}

void faulty_disk_open_read_only(const char *suffix) {
    pthread_mutex_lock(&lock);
    snprintf(read_only_suffix, sizeof read_only_suffix, "%s", suffix ? suffix : "");
    pthread_mutex_unlock(&lock);
}

void faulty_disk_garble_reads(const char *suffix, int count) {
    pthread_mutex_lock(&lock);
    snprintf(read_suffix, sizeof read_suffix, "%s", suffix);
    reads_to_garble = count;
    pthread_mutex_unlock(&lock);
}

void faulty_disk_fail_reads(const char *suffix, int first, int count) {
    pthread_mutex_lock(&lock);
    snprintf(failing_suffix, sizeof failing_suffix, "%s", suffix);
    reads_to_pass = first;
    reads_to_fail = count;
    pthread_mutex_unlock(&lock);
}

int faulty_disk_failed_reads_left(void) {
    pthread_mutex_lock(&lock);
    int answer = reads_to_fail;
    pthread_mutex_unlock(&lock);
    return answer;
}

int faulty_disk_cut_power(const char *destination) {
    int result = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < max_files && result == 0; i++) {
        if (!images[i].bytes) continue;
        char path[2 * max_name_length];
        snprintf(path, sizeof path, "%s%s", destination, images[i].name + strlen(folder));
        FILE *file = fopen(path, "wb");
        if (!file) result = errno;
        else {
            size_t written = fwrite(images[i].bytes, 1, (size_t)images[i].size, file);
            if (fclose(file) != 0 || written != (size_t)images[i].size) result = EIO;
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}
