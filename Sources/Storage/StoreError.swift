import Base

/// The failure of a store's call.
package struct StoreError: Error, Sendable, CustomStringConvertible {
    package enum Code: String, Sendable {
        /// Another process holds the database, or it is busy for too long: try again.
        case busy
        /// Workers of an older version use the database, so its schema cannot be changed: try again after they are
        /// stopped.
        case inUse = "in_use"
        /// The system could not read or write, or lacks memory or descriptors: try again after that is fixed.
        case ioFailure = "io_failure"
        case diskFull = "disk_full"
        case readOnly = "read_only"
        case cannotOpen = "cannot_open"
        /// The file is damaged or is not a database.
        case corrupt
        /// The database was written by a newer version of this program.
        case newerSchema = "newer_schema"
        /// The request contradicts stored data, such as a second grant of one connection.
        case conflict
        /// The database server cannot be reached, or is shutting down: try again.
        case unreachable
        /// The database server responds, but refuses until an administrator has fixed something.
        case refused
        /// Another program has changed, replaced or deleted the database's files in use: stored data might be lost, and
        /// the process must stop.
        case replaced
        /// The database was moved elsewhere and must not be used any more.
        case moved
        case closed
        /// A fault of this program.
        case fault
    }

    package var code: Code
    /// The failure, its place, and the advice to the operator.
    package var message: String
    /// The SQLite file in which one read reported damage that no check of the whole file has confirmed.
    package var suspectedFile: String?
    /// The server's code (https://www.postgresql.org/docs/15/errcodes-appendix.html), if PostgreSQL sent one.
    var sqlState: String?
    /// `true` if the connection cannot be used any more.
    var losesConnection = false
    /// The statement and the server's words, in parentheses.
    var cause: String?
    /// `true` if it is the server's answer to a COMMIT.
    var isAnswerToCommit = false
    /// `true` if a commit was in flight, so that its outcome is unknown.
    var isUncertain = false

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { message }

    /// `true` if the same call might succeed later, after some time or after an administrator has fixed the cause.
    package var mayPass: Bool {
        switch code {
        case .busy, .inUse, .ioFailure, .diskFull, .readOnly, .unreachable, .refused: true
        case .cannotOpen, .corrupt, .newerSchema, .conflict, .replaced, .moved, .closed, .fault: false
        }
    }

    /// Creates the error for a row whose content cannot be parsed.
    ///
    /// The advice is not a backup: that would lose all users' refresh tokens that were rotated since.
    package init(damagedRow what: String) {
        self.init(
            .corrupt,
            "\(what) is damaged in the database; other rows can be used. Stop the workers, and correct or delete that "
                + "row with the database's own shell: the user of a deleted grant or session must sign in again. Do "
                + "not put a backup in the database's place for it: a backup lacks the refresh tokens that were "
                + "rotated since."
        )
    }

    /// Creates the error for a database whose schema has a higher version than this program supports.
    ///
    /// Builds before the first release had more versions than the first release has.
    init(newerSchema version: Int, of database: String, supported: Int) {
        self.init(
            .newerSchema,
            "\(database.prefix(1).uppercased() + database.dropFirst()) has schema version \(version), and this "
                + "refresh-worker supports versions up to \(supported). A newer release wrote it, or a development "
                + "build from before the first release. Nothing was changed. Upgrade refresh-worker. A database of a "
                + "development build cannot be used: name a new database, and import the users and grants into it."
        )
    }

    /// Creates the error for a step of the schema that the programs of live workers could not use.
    init(step: Int, of database: String, usedBy workers: [String]) {
        self.init(
            .inUse,
            "\(database.prefix(1).uppercased() + database.dropFirst()) needs schema version \(step), and workers that "
                + "support only the version before use it (\(workers.joined(separator: ", "))). Stop every worker and "
                + "cron job first, then start again. A killed worker counts as live for \(WorkerReport.lifetime.inWholeUnits)."
        )
    }

    /// Creates the error for any further use of `database`, which was copied to `location`.
    package init(moved database: String, to location: String) {
        self.init(
            .moved,
            """
            \(database) was moved to \(location), and can only be read: name the new database with --database or \
            REFRESH_WORKER_DATABASE. To go back, copy the new database into an empty one (refresh-worker store copy) and name \
            that. The moved database can be copied as well; it has its contents of the time of the move
            """
        )
    }

    /// `true` if the error might be about one of several rows, so that the same call succeeds for the others.
    package var mayConcernOneRow: Bool {
        switch code {
        case .corrupt, .conflict, .fault: true
        case .busy, .inUse, .ioFailure, .diskFull, .readOnly, .cannotOpen, .newerSchema, .unreachable, .refused,
            .replaced, .moved, .closed:
            false
        }
    }

    /// `true` if the store must not be used any more: the database was moved, or its files were replaced.
    package var endsUse: Bool { code == .moved || code == .replaced }
}
