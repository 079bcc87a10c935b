#include <fcntl.h>
#include <linux/stat.h>
#include <sqlite3.h>
#include <sys/syscall.h>
#include <unistd.h>

// statx and the locks of open file descriptions need _GNU_SOURCE, which Swift does not set for a module.

/// Returns 1 if another file is mounted at a path, as `docker run -v grants.sqlite:…` does.
static inline int csqlite_is_mount_point(const char *path) {
    struct statx facts = {0};
    if (syscall(SYS_statx, AT_FDCWD, path, 0, 0, &facts) != 0) return 0;
    return (facts.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

// SQLITE_TRANSIENT is a cast, which Swift does not import. Swift also passes an empty value as a null pointer, which
// SQLite would store as NULL (https://sqlite.org/c3ref/bind_blob.html).

static inline int csqlite_bind_text(sqlite3_stmt *statement, int index, const char *text, sqlite3_uint64 length) {
    return sqlite3_bind_text64(statement, index, text ? text : "", length, SQLITE_TRANSIENT, SQLITE_UTF8);
}

static inline int csqlite_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 length) {
    return sqlite3_bind_blob64(statement, index, bytes ? bytes : "", length, SQLITE_TRANSIENT);
}

// The extended codes are sums, which Swift does not import either. These are the constraints that callers can violate.

static inline int csqlite_is_conflict(int code) {
    return code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY || code == SQLITE_CONSTRAINT_ROWID
        || code == SQLITE_CONSTRAINT_FOREIGNKEY;
}

// sqlite3_db_config is variadic, so Swift does not import it.

static inline int csqlite_keep_log_on_close(sqlite3 *database, int keeps) {
    return sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keeps, (int *)0);
}

// Reads the state of a write-ahead log from the wal-index that all connections share. The layout is a documented file
// format (https://sqlite.org/walformat.html#walidxfmt); an index in another format gives no result.

typedef struct {
    /// Two random numbers that identify this run of the log, from its beginning until it is restarted.
    unsigned int salt1, salt2;
    /// The number of committed frames.
    unsigned int frames;
    /// The number of frames that are copied into the database file.
    unsigned int copied;
    unsigned int page_size;
} csqlite_log_state;

static inline volatile unsigned int *csqlite_log_index(sqlite3 *database, const char *schema) {
    sqlite3_file *file = 0;
    void volatile *region = 0;
    if (sqlite3_file_control(database, schema, SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || !file) return 0;
    if (!file->pMethods || file->pMethods->iVersion < 2 || !file->pMethods->xShmMap) return 0;
    if (file->pMethods->xShmMap(file, 0, 32768, 0, &region) != SQLITE_OK || !region) return 0;
    volatile unsigned int *words = (volatile unsigned int *)region;
    return words[0] == 3007000 ? words : 0;
}

static inline int csqlite_read_log_state(sqlite3 *database, const char *schema, csqlite_log_state *state) {
    volatile unsigned int *words = csqlite_log_index(database, schema);
    if (!words) return 0;
    state->salt1 = words[8];
    state->salt2 = words[9];
    state->frames = words[4];
    state->copied = words[24];
    state->page_size = ((volatile unsigned short *)words)[7];
    if (state->page_size == 1) state->page_size = 65536;
    return 1;
}

// Computes a digest of the first bytes of a database file, to compare them with later ones. It reads through the file
// that SQLite has open: closing a second descriptor would release the locks of this process. Only for callers that
// exclude checkpoints.
static inline int csqlite_digest_file(sqlite3 *database, sqlite3_int64 size, sqlite3_int64 *digest) {
    sqlite3_file *file = 0;
    sqlite3_uint64 words[2048], sum = (sqlite3_uint64)size;
    int result = sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (result != SQLITE_OK) return result;
    if (!file || !file->pMethods) return SQLITE_MISUSE;
    for (sqlite3_int64 offset = 0; offset < size; offset += (sqlite3_int64)sizeof words) {
        sqlite3_int64 rest = size - offset;
        int count = rest < (sqlite3_int64)sizeof words ? (int)rest : (int)sizeof words;
        words[(count - 1) / 8] = 0;
        result = file->pMethods->xRead(file, words, count, offset);
        if (result != SQLITE_OK) return result;
        for (int index = 0; index <= (count - 1) / 8; index++) {
            // Multiplication by an odd number and a shift: two different words never lead from one sum to the same next
            // sum.
            sum = (sum ^ words[index]) * 0x9e3779b97f4a7c15u;
            sum ^= sum >> 32;
        }
    }
    *digest = (sqlite3_int64)sum;
    return SQLITE_OK;
}

// Makes the next checkpoint copy the log from its beginning. Only for callers that exclude every other checkpoint and
// every commit. Readers may use frames that are already copied: both places hold the same content.
static inline void csqlite_copy_log_again(sqlite3 *database, const char *schema) {
    volatile unsigned int *words = csqlite_log_index(database, schema);
    if (words) words[24] = 0;
}

// Rewrites the first bytes of the log unchanged and syncs them. Only for callers that exclude every commit.
static inline int csqlite_write_log_again(sqlite3 *database, sqlite3_int64 length) {
    sqlite3_file *file = 0;
    char bytes[4096];
    int result = sqlite3_file_control(database, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file);
    if (result != SQLITE_OK) return result;
    if (!file || !file->pMethods) return SQLITE_MISUSE;
    for (sqlite3_int64 offset = 0; offset < length; offset += (sqlite3_int64)sizeof bytes) {
        sqlite3_int64 rest = length - offset;
        int count = rest < (sqlite3_int64)sizeof bytes ? (int)rest : (int)sizeof bytes;
        result = file->pMethods->xRead(file, bytes, count, offset);
        if (result == SQLITE_OK) result = file->pMethods->xWrite(file, bytes, count, offset);
        if (result != SQLITE_OK) return result;
    }
    return file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
}
