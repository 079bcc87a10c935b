private import CSQLite
import Store

extension StoreError {
    /// What a result code of SQLite's means for the store: the only place that knows (https://sqlite.org/rescode.html).
    ///
    /// `detail` is SQLite's own message, which names tables and columns but never a bound value.
    init(resultCode: Int32, detail: String, path: String, during action: String) {
        let database = "the database \(path)"
        let cause = "(\(action): \(detail), SQLite code \(resultCode))"
        switch resultCode & 0xff {
        case SQLITE_BUSY, SQLITE_LOCKED:
            self.init(
                .busy,
                "Another process holds \(database) \(cause). Try again; `fuser \(path)` shows who has it open."
            )
        case SQLITE_FULL:
            self.init(
                .diskFull,
                "There is no room for \(database) \(cause). Make room on its disk; what was stored before is intact."
            )
        case SQLITE_IOERR:
            self.init(.input, "Reading or writing \(database) failed \(cause). Look at the disk and the system log.")
        case SQLITE_READONLY, SQLITE_PERM:
            self.init(
                .readOnly,
                "\(database.capitalizedFirst) cannot be written \(cause). Let the worker's user write to it and to its folder."
            )
        case SQLITE_CANTOPEN, SQLITE_AUTH:
            self.init(
                .cannotOpen,
                "\(database.capitalizedFirst) cannot be opened \(cause). See that its folder exists and that the worker's user may "
                    + "use it."
            )
        case SQLITE_CORRUPT, SQLITE_NOTADB:
            self.init(
                .corrupt,
                "\(database.capitalizedFirst) is damaged, or is no SQLite database \(cause). Stop the worker, keep the file for a "
                    + "repair, and put a backup in its place."
            )
        case SQLITE_CONSTRAINT where csqlite_is_conflict(resultCode) != 0:
            self.init(.conflict, "What was to be written contradicts what \(database) holds \(cause).")
        default:
            self.init(.fault, "A statement failed in \(database) \(cause). This is a fault of refresh-worker.")
        }
    }
}

extension String {
    fileprivate var capitalizedFirst: String { prefix(1).uppercased() + dropFirst() }
}
