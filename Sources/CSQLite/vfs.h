#include <errno.h>
#include <sqlite3.h>
#include <stddef.h>
#include <string.h>

// A VFS that passes every call on to SQLite's default VFS. It changes one result, and joins two writes into one.
//
// SQLite's unix VFS returns SQLITE_IOERR_CORRUPTFS when a read fails with EIO, ENXIO or ERANGE, and the statement that
// needed the page then fails with SQLITE_CORRUPT (unixRead in os_unix.c, sqlite3VdbeExec in vdbe.c). A caller cannot
// distinguish that from damage. This VFS returns SQLITE_IOERR_READ instead, so that SQLITE_CORRUPT only means that
// damaged bytes were read. SQLITE_FCNTL_LAST_ERRNO does not tell the two apart: a successful read does not reset it.
//
// SQLite writes each frame of a log with two calls, its header and its page. A commit writes dozens of frames, so that
// these were a third of all system calls of a refresh. This VFS holds the header back until the page follows.

#define CSQLITE_VFS_NAME "refresh-worker"

/// A file of this VFS, and the file of the default VFS behind it.
struct csqlite_file {
    sqlite3_file base;
    sqlite3_file *real;
    /// The frame that is being written; null for a file that is not a log.
    struct csqlite_frame *frame;
};

enum { CSQLITE_FRAME_HEADER = 24, CSQLITE_LARGEST_PAGE = 65536 };

/// A frame of a log whose header is held back.
struct csqlite_frame {
    int is_held;
    /// Set after the file was read. SQLite then rewrites headers without their pages if it has replaced pages of a
    /// transaction (walRewriteChecksums in wal.c): such a header is not held back.
    int was_read;
    sqlite3_int64 offset;
    char bytes[CSQLITE_FRAME_HEADER + CSQLITE_LARGEST_PAGE];
};

static sqlite3_file *csqlite_real(sqlite3_file *file) { return ((struct csqlite_file *)file)->real; }

/// Writes a header that is held back, because something else than its page follows.
static int csqlite_write_held(sqlite3_file *file) {
    struct csqlite_frame *frame = ((struct csqlite_file *)file)->frame;
    if (!frame || !frame->is_held) return SQLITE_OK;
    frame->is_held = 0;
    sqlite3_file *real = csqlite_real(file);
    return real->pMethods->xWrite(real, frame->bytes, CSQLITE_FRAME_HEADER, frame->offset);
}

static int csqlite_close(sqlite3_file *file) {
    sqlite3_file *real = csqlite_real(file);
    int written = csqlite_write_held(file);
    int result = real->pMethods->xClose(real);
    sqlite3_free(((struct csqlite_file *)file)->frame);
    sqlite3_free(real);
    return result == SQLITE_OK ? written : result;
}

static int csqlite_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
    sqlite3_file *real = csqlite_real(file);
    struct csqlite_frame *frame = ((struct csqlite_file *)file)->frame;
    if (frame) {
        int result = csqlite_write_held(file);
        if (result != SQLITE_OK) return result;
        frame->was_read = 1;
    }
    int result = real->pMethods->xRead(real, bytes, count, offset);
    return result == SQLITE_IOERR_CORRUPTFS ? SQLITE_IOERR_READ : result;
}

/// Copies a page in pieces: the C library copies a longer one with an instruction that is slow to start.
static void csqlite_copy_page(char *target, const char *page, int count) {
    enum { piece = 1024 };
    while (count > piece) {
        memcpy(target, page, piece);
        target += piece;
        page += piece;
        count -= piece;
    }
    memcpy(target, page, (size_t)count);
}

/// Writes to a log: a header waits for its page, and both are one write.
static int csqlite_write_frame(
    sqlite3_file *file, struct csqlite_frame *frame, const void *bytes, int count, sqlite3_int64 offset
) {
    sqlite3_file *real = csqlite_real(file);
    int is_page = frame->is_held && offset == frame->offset + CSQLITE_FRAME_HEADER && count <= CSQLITE_LARGEST_PAGE;
    if (is_page) {
        frame->is_held = 0;
        csqlite_copy_page(frame->bytes + CSQLITE_FRAME_HEADER, bytes, count);
        return real->pMethods->xWrite(real, frame->bytes, CSQLITE_FRAME_HEADER + count, frame->offset);
    }
    int result = csqlite_write_held(file);
    if (result != SQLITE_OK) return result;
    if (count == CSQLITE_FRAME_HEADER && !frame->was_read) {
        memcpy(frame->bytes, bytes, CSQLITE_FRAME_HEADER);
        frame->offset = offset;
        frame->is_held = 1;
        return SQLITE_OK;
    }
    if (count != CSQLITE_FRAME_HEADER) frame->was_read = 0;
    return real->pMethods->xWrite(real, bytes, count, offset);
}

static int csqlite_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
    struct csqlite_frame *frame = ((struct csqlite_file *)file)->frame;
    if (frame) return csqlite_write_frame(file, frame, bytes, count, offset);
    sqlite3_file *real = csqlite_real(file);
    return real->pMethods->xWrite(real, bytes, count, offset);
}

static int csqlite_truncate(sqlite3_file *file, sqlite3_int64 size) {
    sqlite3_file *real = csqlite_real(file);
    int result = csqlite_write_held(file);
    return result == SQLITE_OK ? real->pMethods->xTruncate(real, size) : result;
}

static int csqlite_sync(sqlite3_file *file, int flags) {
    sqlite3_file *real = csqlite_real(file);
    int result = csqlite_write_held(file);
    return result == SQLITE_OK ? real->pMethods->xSync(real, flags) : result;
}

static int csqlite_file_size(sqlite3_file *file, sqlite3_int64 *size) {
    sqlite3_file *real = csqlite_real(file);
    int result = csqlite_write_held(file);
    return result == SQLITE_OK ? real->pMethods->xFileSize(real, size) : result;
}

static int csqlite_lock(sqlite3_file *file, int level) {
    sqlite3_file *real = csqlite_real(file);
    return real->pMethods->xLock(real, level);
}

static int csqlite_unlock(sqlite3_file *file, int level) {
    sqlite3_file *real = csqlite_real(file);
    return real->pMethods->xUnlock(real, level);
}

static int csqlite_check_lock(sqlite3_file *file, int *is_reserved) {
    sqlite3_file *real = csqlite_real(file);
    return real->pMethods->xCheckReservedLock(real, is_reserved);
}

static int csqlite_control(sqlite3_file *file, int operation, void *argument) {
    sqlite3_file *real = csqlite_real(file);
    return real->pMethods->xFileControl(real, operation, argument);
}

static int csqlite_sector_size(sqlite3_file *file) {
    sqlite3_file *real = csqlite_real(file);
    return real->pMethods->xSectorSize(real);
}

static int csqlite_characteristics(sqlite3_file *file) {
    sqlite3_file *real = csqlite_real(file);
    return real->pMethods->xDeviceCharacteristics(real);
}

static int csqlite_shm_map(sqlite3_file *file, int region, int size, int extends, void volatile **bytes) {
    sqlite3_file *real = csqlite_real(file);
    return real->pMethods->xShmMap(real, region, size, extends, bytes);
}

static int csqlite_shm_lock(sqlite3_file *file, int offset, int count, int flags) {
    sqlite3_file *real = csqlite_real(file);
    return real->pMethods->xShmLock(real, offset, count, flags);
}

static void csqlite_shm_barrier(sqlite3_file *file) {
    sqlite3_file *real = csqlite_real(file);
    real->pMethods->xShmBarrier(real);
}

static int csqlite_shm_unmap(sqlite3_file *file, int deletes) {
    sqlite3_file *real = csqlite_real(file);
    return real->pMethods->xShmUnmap(real, deletes);
}

// Version 2: shared memory for the log, and no mapping of the database file (`mmap_size` is 0). Version 1 is for files
// whose VFS has no shared memory.
#define CSQLITE_FILE_METHODS(version) \
    { \
        version, csqlite_close, csqlite_read, csqlite_write, csqlite_truncate, csqlite_sync, csqlite_file_size, \
            csqlite_lock, csqlite_unlock, csqlite_check_lock, csqlite_control, csqlite_sector_size, \
            csqlite_characteristics, csqlite_shm_map, csqlite_shm_lock, csqlite_shm_barrier, csqlite_shm_unmap, 0, 0 \
    }

static const sqlite3_io_methods csqlite_file_methods = CSQLITE_FILE_METHODS(2);
static const sqlite3_io_methods csqlite_plain_file_methods = CSQLITE_FILE_METHODS(1);

static int csqlite_vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags) {
    (void)vfs;
    sqlite3_vfs *usual = sqlite3_vfs_find(0);
    sqlite3_file *real = (sqlite3_file *)sqlite3_malloc(usual->szOsFile);
    file->pMethods = 0;
    if (!real) return SQLITE_NOMEM;
    memset(real, 0, (size_t)usual->szOsFile);
    int result = usual->xOpen(usual, name, real, flags, out_flags);
    if (result != SQLITE_OK) {
        // SQLite reads the cause after this function returns (xGetLastError).
        int cause = errno;
        if (real->pMethods) real->pMethods->xClose(real);
        sqlite3_free(real);
        errno = cause;
        return result;
    }
    struct csqlite_frame *frame = 0;
    if (flags & SQLITE_OPEN_WAL) {
        frame = (struct csqlite_frame *)sqlite3_malloc(sizeof *frame);
        if (!frame) {
            real->pMethods->xClose(real);
            sqlite3_free(real);
            return SQLITE_NOMEM;
        }
        memset(frame, 0, offsetof(struct csqlite_frame, bytes));
    }
    ((struct csqlite_file *)file)->real = real;
    ((struct csqlite_file *)file)->frame = frame;
    file->pMethods = real->pMethods->iVersion >= 2 ? &csqlite_file_methods : &csqlite_plain_file_methods;
    return SQLITE_OK;
}

static int csqlite_vfs_delete(sqlite3_vfs *vfs, const char *name, int syncs_folder) {
    (void)vfs;
    sqlite3_vfs *usual = sqlite3_vfs_find(0);
    return usual->xDelete(usual, name, syncs_folder);
}

static int csqlite_vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *answer) {
    (void)vfs;
    sqlite3_vfs *usual = sqlite3_vfs_find(0);
    return usual->xAccess(usual, name, flags, answer);
}

static int csqlite_vfs_full_path(sqlite3_vfs *vfs, const char *name, int size, char *path) {
    (void)vfs;
    sqlite3_vfs *usual = sqlite3_vfs_find(0);
    return usual->xFullPathname(usual, name, size, path);
}

static int csqlite_vfs_last_error(sqlite3_vfs *vfs, int size, char *text) {
    (void)vfs;
    sqlite3_vfs *usual = sqlite3_vfs_find(0);
    return usual->xGetLastError ? usual->xGetLastError(usual, size, text) : 0;
}

/// Registers the VFS under its name. Call it once, before the library is used for anything else.
///
/// It also turns off SQLite's count of its memory, which costs a lock for each allocation and which nothing here reads.
static inline int csqlite_register_vfs(void) {
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    static sqlite3_vfs vfs;
    sqlite3_vfs *usual = sqlite3_vfs_find(0);
    if (!usual) return SQLITE_ERROR;
    // The functions that are not replaced here (clock and random numbers) do not depend on the VFS that they are called
    // with.
    vfs = *usual;
    vfs.iVersion = usual->iVersion < 2 ? usual->iVersion : 2;
    vfs.szOsFile = (int)sizeof(struct csqlite_file);
    vfs.pNext = 0;
    vfs.zName = CSQLITE_VFS_NAME;
    vfs.xOpen = csqlite_vfs_open;
    vfs.xDelete = csqlite_vfs_delete;
    vfs.xAccess = csqlite_vfs_access;
    vfs.xFullPathname = csqlite_vfs_full_path;
    vfs.xGetLastError = csqlite_vfs_last_error;
    return sqlite3_vfs_register(&vfs, 0);
}
