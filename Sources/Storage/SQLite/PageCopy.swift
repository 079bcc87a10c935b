private import CSQLite

/// Owns a backup in progress; belongs to the one call that runs it.
@safe
struct PageCopy: ~Copyable {
    private let handle: OpaquePointer
    private let source: SQLiteConnection

    init(adopting handle: OpaquePointer, from source: SQLiteConnection) {
        unsafe self.handle = handle
        self.source = source
    }

    deinit {
        // Its result repeats that of the last step (https://sqlite.org/c3ref/backup_finish.html).
        _ = unsafe sqlite3_backup_finish(handle)
    }

    /// Copies the next pages; returns `true` if there are more.
    ///
    /// A source that is temporarily locked is not an error.
    func step(pages: Int32) throws(StoreError) -> Bool {
        let result = unsafe sqlite3_backup_step(handle, pages)
        switch result {
        case SQLITE_OK: return true
        case SQLITE_DONE: return false
        default:
            let detail = unsafe String(cString: sqlite3_errstr(result))
            throw StoreError(resultCode: result, detail: detail, path: source.path, during: "backup")
        }
    }

    var progress: BackupProgress {
        let total = Int(unsafe sqlite3_backup_pagecount(handle))
        return BackupProgress(pagesCopied: total - Int(unsafe sqlite3_backup_remaining(handle)), pagesInAll: total)
    }
}
