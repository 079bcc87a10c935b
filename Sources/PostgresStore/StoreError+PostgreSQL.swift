import Store

extension StoreError {
    /// What a server's code means for the store: the only place that knows.
    ///
    /// `detail` is the server's own message, or libpq's, which name tables and constraints but never a stored value.
    init(state: String?, detail: String, database: String, during action: String) {
        let cause = "(\(action): \(detail)\(state.map { ", SQLSTATE \($0)" } ?? ""))"
        switch state ?? "" {
        case "40001", "40P01", "55P03", "57014", "25P03":
            self.init(.busy, "Others hold what was asked for in \(database) \(cause). Try again.")
        case "53100":
            self.init(
                .diskFull,
                "There is no room for \(database) \(cause). Make room on the server's disk; what was stored before is intact."
            )
        case "53300":
            self.init(
                .busy,
                "\(database) has no connection left \(cause). Raise max_connections, put a pooler in front, or run fewer workers."
            )
        case "25006":
            self.init(
                .readOnly,
                "\(database) takes no writes, as a standby does and a server that failed over \(cause). Let the URL name the "
                    + "primary, or all servers."
            )
        case "28P01", "28000":
            self.init(
                .refused,
                "\(database) does not let this user in \(cause). Check user and password in the URL or the password file, and "
                    + "the server's pg_hba.conf."
            )
        case "3D000":
            self.init(
                .refused,
                "\(database.capitalizedFirst) is not there \(cause). Create it, or name another in the URL."
            )
        case "42501":
            self.init(
                .refused,
                "\(database) lacks a permission \(cause). As its owner run: GRANT ALL ON SCHEMA refresh_worker TO the user; "
                    + "GRANT ALL ON ALL TABLES IN SCHEMA refresh_worker TO the user;"
            )
        case "42P01", "42703", "3F000":
            self.init(
                .cannotOpen,
                "The schema refresh_worker of \(database) is not as it was made \(cause). Restore a backup, or restart the "
                    + "worker to have a missing schema made."
            )
        case "57P01", "57P02", "57P03", "57P05":
            self.init(.unreachable, "\(database) is shutting down or starting \(cause). It is tried again.")
        case "23503", "23505":
            self.init(.conflict, "What was to be written contradicts what \(database) holds \(cause).")
        case "XX001", "XX002":
            self.init(.corrupt, "\(database) is damaged \(cause). Stop the workers and restore a backup.")
        case let state where state.hasPrefix("08"):
            self.init(.unreachable, "The connection to \(database) failed \(cause). It is tried again.")
        case let state where state.hasPrefix("53") || state.hasPrefix("58"):
            self.init(.input, "\(database) lacks memory or cannot use its disk \(cause). Look at the server's log.")
        default:
            self.init(.fault, "A statement failed in \(database) \(cause). This is a fault of refresh-worker.")
        }
    }

    /// How libpq's messages about settings begin, which no server has seen and no waiting mends
    /// (https://github.com/postgres/postgres/blob/REL_15_STABLE/src/interfaces/libpq/fe-connect.c).
    private static let settingFaults = [
        "invalid ", "could not match ", "sslmode value ", "weak sslmode ", "definition of service ", "service file ",
        "syntax error in service file ", "nested service specifications ",
    ]

    /// Why no connection came about, by libpq's message, which holds the server's code where a server answered.
    init(connecting detail: String, database: String) {
        let lines = detail.split(separator: "\n").filter { !$0.hasPrefix("LOCATION:") }
        let words = lines.joined(separator: " ").split(separator: " ")
        // Asked to be verbose, libpq writes "FATAL:  28P01: password authentication failed …".
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
                "\(database) cannot be asked for (\(text)). Mend the URL, or the variable (PGPORT, PGSSLMODE, PGSERVICE and the "
                    + "like) or the service file that says so."
            )
        } else if text.contains("certificate") || text.contains("SSL") {
            self.init(
                .refused,
                "No trusted connection to \(database) (\(text)). Check sslmode and sslrootcert in the URL, and the server's "
                    + "certificate."
            )
        } else {
            self.init(
                .unreachable,
                "\(database) cannot be reached (\(text)). Check host and port in the URL, and that the server runs."
            )
        }
    }
}

extension Character {
    fileprivate var isCodeCharacter: Bool { isASCII && (isNumber || isUppercase) }
}
