#include <sqlite3.h>

// SQLITE_TRANSIENT is a cast, which Swift does not import; and Swift hands over an empty value as a null pointer, which
// SQLite would store as NULL (https://sqlite.org/c3ref/bind_blob.html).

static inline int csqlite_bind_text(sqlite3_stmt *statement, int index, const char *text, sqlite3_uint64 length) {
    return sqlite3_bind_text64(statement, index, text ? text : "", length, SQLITE_TRANSIENT, SQLITE_UTF8);
}

static inline int csqlite_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 length) {
    return sqlite3_bind_blob64(statement, index, bytes ? bytes : "", length, SQLITE_TRANSIENT);
}

// The extended codes are sums, which Swift does not import either. These are the constraints that a caller can run into.

static inline int csqlite_is_conflict(int code) {
    return code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY || code == SQLITE_CONSTRAINT_ROWID
        || code == SQLITE_CONSTRAINT_FOREIGNKEY;
}
