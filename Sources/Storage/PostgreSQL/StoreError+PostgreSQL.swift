extension StoreError {
    /// Creates the error for a server's code: the only function that interprets these codes.
    ///
    /// `detail` is the server's own message, or libpq's, which name tables and constraints but never a stored value.
    init(state: String?, detail: String, database: DatabaseName, during action: String) {
        let subject = database.capitalizedFirst
        let schema = database.schema
        let cause = "(\(action): \(detail.oneLine)\(state.map { ", SQLSTATE \($0)" } ?? ""))"
        switch state ?? "" {
        case Self.movedState: self.init(moved: database.description, to: detail)
        case Self.outdatedState:
            self.init(
                .unreachable,
                "\(subject) was replaced by a promoted server \(cause). It is not used, because writes to it would be "
                    + "lost. Shut it down, or make it a standby."
            )
        case Self.otherTablesState:
            self.init(
                .cannotOpen,
                "The tables in \(database) were dropped and created again, or changed by a newer refresh-worker, while "
                    + "this one used them \(cause). Its results wait in memory. If a newer one runs, stop this one, "
                    + "which saves them in a spill file. Otherwise restore a backup of the schema \(database.schema.text)."
            )
        case "40001", "40P01", "55P03":
            self.init(.busy, "Other sessions hold locks in \(database) for too long \(cause). Try again.")
        case "57014":
            self.init(
                .busy,
                "A statement took too long in \(database) \(cause). The server is overloaded, another session holds locks, "
                    + "or an old transaction keeps dead rows in the tables: refresh-worker doctor names it. Try again."
            )
        case "25P03":
            self.init(
                .busy,
                "\(subject) ended a transaction because this process did not go on with it \(cause). It was suspended, or "
                    + "its machine is overloaded. Try again."
            )
        case "53100":
            self.init(
                .diskFull,
                "The disk of \(database) is full \(cause). Free space on the server's disk; stored data is intact."
            )
        case "53300":
            self.init(
                .busy,
                "\(subject) has no connection left \(cause). Raise max_connections, put a pooler in front, or run "
                    + "fewer workers."
            )
        case "25006":
            self.init(
                .readOnly,
                "\(subject) does not accept writes: it is a standby, or was set to read-only \(cause). Name the "
                    + "primary, or all servers, in the URL."
            )
        case "28P01", "28000":
            self.init(
                .refused,
                "\(subject) refuses this user \(cause). Check user and password in the URL or the password file, and "
                    + "the server's pg_hba.conf."
            )
        case "3D000":
            self.init(
                .refused,
                "\(database.database.capitalizedFirst) does not exist \(cause). Create it, or name another in the URL."
            )
        case "42501":
            self.init(
                .refused,
                "\(subject) lacks a permission \(cause). As its owner run: GRANT ALL ON SCHEMA \(schema.identifier) TO the "
                    + "user; GRANT ALL ON ALL TABLES IN SCHEMA \(schema.identifier) TO the user;"
            )
        case "42P01", "42703", "42883", "3F000":
            self.init(
                .cannotOpen,
                "Tables or functions of \(database.withSchema) are missing \(cause). Restore a backup. Results wait in "
                    + "this worker's memory until then: do not restart it."
            )
        case "57P01", "57P02", "57P03", "57P05":
            self.init(.unreachable, "\(subject) is shutting down or starting \(cause). It is tried again.")
        case "23503", "23505":
            self.init(.conflict, "The data to be written contradicts the data in \(database) \(cause).")
        case "XX001", "XX002":
            self.init(.corrupt, "\(subject) is damaged \(cause). Stop the workers and restore a backup.")
        case "08P01" where detail.contains("statement pooling"):
            self.init(
                .refused,
                "\(subject) is behind a pooler in statement mode, which allows no transactions \(cause). Set pool_mode = "
                    + "transaction for it in pgbouncer.ini, and reload pgbouncer."
            )
        case let state where state.hasPrefix("08"):
            self.init(.unreachable, "The connection to \(database) failed \(cause). It is tried again.")
        case let state where state.hasPrefix("53") || state.hasPrefix("58"):
            self.init(.ioFailure, "\(subject) lacks memory or cannot use its disk \(cause). Check the server's log.")
        default: self.init(.fault, "A statement failed in \(database) \(cause). This is a fault of refresh-worker.")
        }
        sqlState = state
        self.cause = cause
    }

    /// The beginnings of libpq's messages about settings, which come from before any connection and which a retry does
    /// not fix (https://github.com/postgres/postgres/blob/REL_15_STABLE/src/interfaces/libpq/fe-connect.c).
    private static let settingFaults = [
        "invalid ", "could not match ", "sslmode value ", "weak sslmode ", "definition of service ", "service file ",
        "syntax error in service file ", "nested service specifications ",
    ]

    /// libpq's messages about a server that does not match `target_session_attrs`.
    private static let sessionRefusals = [
        "session is read-only", "server is in hot standby mode", "server is not in hot standby mode",
    ]

    /// Creates the error for a failed connection from libpq's message, which has the server's code if a server
    /// responded.
    init(connecting detail: String, database: DatabaseName) {
        let lines = detail.split(separator: "\n").filter { !$0.hasPrefix("LOCATION:") }
        let words = lines.joined(separator: " ").oneLine.split(separator: " ")
        // In verbose mode libpq writes "FATAL:  28P01: password authentication failed …".
        let state = words.first { word in
            word.utf8.count == 6 && word.last == ":" && word.contains(where: \.isNumber)
                && word.dropLast().allSatisfy(\.isCodeCharacter)
        }
        let text = words.filter { $0 != state }.joined(separator: " ")
        if let state {
            self.init(state: String(state.dropLast()), detail: text, database: database, during: "connecting")
        } else if Self.settingFaults.contains(where: text.hasPrefix) || text.contains("failed: invalid integer value") {
            self.init(
                .refused,
                "\(database.capitalizedFirst) cannot be opened with these settings (\(text)). Correct the URL, or the "
                    + "variable (PGPORT, PGSSLMODE, PGSERVICE and the like) or the service file that sets it."
            )
        } else if Self.sessionRefusals.contains(where: text.contains) {
            self.init(
                .readOnly,
                "\(database.capitalizedFirst) does not accept writes (\(text)). Name the primary, or all servers, in "
                    + "the URL."
            )
        } else if text.contains("certificate") || text.contains("SSL") {
            self.init(
                .refused,
                "There is no trusted connection to \(database) (\(text)). Check sslmode and sslrootcert in the URL, "
                    + "and the server's certificate."
            )
        } else {
            self.init(
                .unreachable,
                "\(database.capitalizedFirst) cannot be reached (\(text)). Check host and port in the URL, and that "
                    + "the server runs."
            )
        }
        losesConnection = true
    }

    /// Creates the error for a transaction whose wait for the synchronous standby was cancelled.
    ///
    /// The transaction is repeated by its caller. It locks the same rows, so its commit waits for the standby too, and
    /// the standby gets the first commit before it.
    init(unreplicatedIn database: DatabaseName) {
        self.init(
            .unreachable,
            "A commit in \(database) did not wait for the synchronous standby, because the wait was cancelled "
                + "(pg_cancel_backend). It counts as not done, and is tried again. Find out who cancels it, and why the "
                + "standby is behind."
        )
        isUncertain = true
    }

    /// `true` if the same statements might succeed in a new transaction: none of them was written.
    var mayRunAgain: Bool {
        guard !isUncertain else { return false }
        switch sqlState {
        // A serialisation failure, a deadlock, and an idle transaction that the server ended.
        case "40001", "40P01", "25P03": return true
        // A prepared statement is missing or exists already: a pooler used another session.
        case "26000", "42P05": return true
        default: return losesConnection
        }
    }

    var losingConnection: StoreError {
        var error = self
        error.losesConnection = true
        return error
    }

    /// `true` if the server has ended a statement at its limit.
    package var isTimeout: Bool { sqlState == "57014" }

    /// `true` if the server's code says that the transaction has not taken place.
    ///
    /// No other code of a COMMIT does: a proxy or an extension reports with XX000, and others, that it does not know.
    var deniesCommit: Bool {
        switch sqlState ?? "" {
        // A serialisation failure, a deadlock, a constraint that was checked at the end.
        case "40001", "40P01", "40002": true
        case Self.outdatedState: true
        // A constraint, and a transaction in the wrong state, such as one that the server has ended.
        case let state: state.hasPrefix("23") || state.hasPrefix("25")
        }
    }

    /// Returns the error for a transaction whose commit might or might not have taken place.
    func asUncertain(in database: DatabaseName) -> StoreError {
        let cause = cause ?? "(\(message))"
        let isAnswered = isAnswerToCommit && !losesConnection
        let event =
            isAnswered
            ? "The commit in \(database) ended with an error"
            : "The connection to \(database) was lost during a commit"
        // The code of a full disk, for example, tells an administrator what to do.
        let code = isAnswered && mayPass ? code : .unreachable
        var error = StoreError(
            code,
            "\(event), so it is not known whether that took place. It is safe to try again. \(cause)"
        ).losingConnection
        error.sqlState = sqlState
        error.isUncertain = true
        return error
    }
}

extension Character {
    fileprivate var isCodeCharacter: Bool { isASCII && (isNumber || isUppercase) }
}
