private import CSQLite
private import Glibc

extension StoreError {
    /// Creates the error for a result code of SQLite: the only place that interprets them
    /// (https://sqlite.org/rescode.html).
    ///
    /// `detail` is SQLite's own message, which names tables and columns but never a bound value. `systemError` is the
    /// system's error behind the result, or 0.
    init(resultCode: Int32, detail: String, path: String, during action: String, systemError: Int32 = 0) {
        let database = "the database \(path)"
        let cause = "(\(action): \(detail), SQLite code \(resultCode))"
        switch resultCode & 0xff {
        case SQLITE_BUSY, SQLITE_LOCKED:
            self.init(
                .busy,
                "Another process holds \(database) \(cause). Try again; `fuser \(path)` shows who has it open."
            )
        case SQLITE_FULL:
            self.init(.diskFull, "The disk of \(database) is full \(cause). Free space on it; stored data is intact.")
        case SQLITE_IOERR:
            self.init(.ioFailure, "Reading or writing \(database) failed \(cause). Check the disk and the system log.")
        case SQLITE_CANTOPEN where Self.maySoonPass(systemError), SQLITE_NOMEM:
            let reason = unsafe resultCode == SQLITE_NOMEM ? "out of memory" : String(cString: strerror(systemError))
            self.init(
                .ioFailure,
                "\(database.capitalizedFirst) cannot be used at the moment: \(reason) \(cause). Try again; if it "
                    + "fails again, check the disk, the system log and the limits of the process."
            )
        case SQLITE_CANTOPEN where Self.isUnexplained(systemError, for: path):
            self.init(
                .ioFailure,
                "\(database.capitalizedFirst) cannot be used at the moment: one of its files could not be opened "
                    + "\(cause). Try again; if it fails again, check the disk, the system log and the limits of the "
                    + "process."
            )
        case SQLITE_READONLY where Self.mayWrite(path): self.init(openedReadOnly: path, cause: cause)
        case SQLITE_READONLY, SQLITE_PERM:
            self.init(
                .readOnly,
                "\(database.capitalizedFirst) cannot be written \(cause). Let the worker's user write to it and to "
                    + "its folder."
            )
        case SQLITE_CANTOPEN, SQLITE_AUTH:
            self.init(
                .cannotOpen,
                "\(database.capitalizedFirst) cannot be opened \(cause). Check that its folder exists and that the "
                    + "worker's user can use it."
            )
        case SQLITE_CORRUPT, SQLITE_NOTADB:
            self.init(
                .corrupt,
                "A read from \(database) returned damaged data \(cause). Run `refresh-worker doctor`, which reads the "
                    + "whole file, and check the disk and the system log."
            )
            suspectedFile = path
        case SQLITE_CONSTRAINT where csqlite_is_conflict(resultCode) != 0:
            self.init(.conflict, "The data to be written contradicts the data in \(database) \(cause).")
        default: self.init(.fault, "A statement failed in \(database) \(cause). This is a fault of refresh-worker.")
        }
    }

    /// Creates the error for a file that can be written, but that SQLite has opened read-only. SQLite tries that after
    /// any failure of the first attempt, so a passing lack of descriptors would look like a lack of rights.
    init(openedReadOnly path: String, cause: String) {
        self.init(
            .ioFailure,
            "The database \(path) could not be opened for writing just now, although its permissions allow writing "
                + "\(cause). Try again; if it fails again, check the disk and the system log."
        )
    }

    /// Creates the error for a database that a second check has found damaged.
    init(damaged path: String, problems: [String]) {
        self.init(
            .corrupt,
            "The database \(path) is damaged, or is not an SQLite database "
                + "(\(problems.prefix(3).joined(separator: "; "))). Stop the worker, keep the file for a repair, and "
                + "put the latest backup in its place."
        )
    }

    /// Creates the error for a file of leases that a second check has found damaged.
    init(damagedLeasesOf path: String) {
        self.init(
            .ioFailure,
            "The file of leases of the database \(path) is damaged. It holds no tokens. Try again: the next process "
                + "that opens the database makes a new one."
        )
    }

    /// `true` if a line of SQLite's check of a file reports a page that could not be read.
    static func isFailedRead(_ problem: String) -> Bool {
        problem.split(separator: "\n").contains { line in
            // SQLite checks a page's number before it asks for the page, so only the read itself fails in this way.
            if line.contains("failed to get page") { return true }
            guard let code = line.split(separator: "error code=").last.flatMap({ Int32($0) }) else { return false }
            return [SQLITE_IOERR, SQLITE_NOMEM].contains(code & 0xff)
        }
    }

    private static func maySoonPass(_ systemError: Int32) -> Bool {
        [EIO, EMFILE, ENFILE, ENOMEM, EINTR, EAGAIN].contains(systemError)
    }

    /// `true` if all files exist and can be written, although the system's error says that one is missing.
    ///
    /// If SQLite cannot open the shared index, it tries a second time, read-only. If the first attempt fails for lack
    /// of descriptors and the file does not exist yet, only the error of the second one is left.
    private static func isUnexplained(_ systemError: Int32, for path: String) -> Bool {
        [0, ENOENT].contains(systemError) && mayWrite(path)
    }

    private static func mayWrite(_ path: String) -> Bool { DatabaseFile.exists(path) && DatabaseFile.mayWrite(path) }
}
