private import Base
private import CSQLite

extension SQLiteStore {
    static let quickCheck = SQLQuery("quick check", "PRAGMA quick_check")

    /// Reads the whole file again after one read has reported damage; returns the error that the process should end
    /// with.
    ///
    /// A file is called damaged only if two checks find the same problem: a broken cable or memory gives wrong data
    /// once, and the advice to restore a backup would then lose every token that was rotated since. It blocks, and
    /// takes minutes for a large file.
    package static func confirmed(_ error: StoreError) -> StoreError {
        confirmed(error, bootID: BootID.read())
    }

    static func confirmed(_ error: StoreError, bootID: String?) -> StoreError {
        guard let path = error.suspectedFile, DatabaseFile.exists(path) else { return error }
        let leases = bootID.map { LeaseFile(of: path, bootID: $0).path }
        do throws(StoreError) {
            let problems = try lastingProblems(of: path)
            guard problems.isEmpty else { return StoreError(damaged: path, problems: problems) }
            if let leases, isDamaged(leases) {
                return StoreError(damagedLeasesOf: path)
            }
        } catch {
            return error
        }
        return StoreError(
            .ioFailure,
            "A read from the database \(path) returned damaged data, but a second read found the whole file intact. "
                + "Try again, and check the disk and the system log. The first error: \(error.message)"
        )
    }

    /// `true` if two checks of a file have found the same problem.
    static func isDamaged(_ path: String) -> Bool {
        guard DatabaseFile.exists(path) else { return false }
        do {
            return try !lastingProblems(of: path).isEmpty
        } catch {
            return false
        }
    }

    /// Returns the problems that two checks of a file have both found.
    private static func lastingProblems(of path: String) throws(StoreError) -> [String] {
        let first = try problems(of: path)
        guard !first.isEmpty else { return [] }
        let second = Set(try problems(of: path))
        return first.filter(second.contains)
    }

    private static func problems(of path: String) throws(StoreError) -> [String] {
        do throws(StoreError) {
            // Not a connection of the store, which has pages in its cache.
            let connection = try SQLiteConnection(path: path, timeout: .seconds(10))
            connection.keepLogOnClose(true)
            return try connection.problems(by: quickCheck)
        } catch {
            guard error.code == .corrupt else { throw error }
            return ["it cannot be read"]
        }
    }
}

extension SQLiteConnection {
    /// Returns the problems that a check of the file finds.
    ///
    /// SQLite's check lists a page that it could not read like one that is damaged; here the check fails instead.
    func problems(by check: SQLQuery) throws(StoreError) -> [String] {
        let problems = try rows(check) { $0.text() }.filter { $0 != "ok" }
        guard !problems.contains(where: Self.isFailedRead) else {
            throw StoreError(
                .ioFailure,
                "Reading the database \(path) failed while it was checked. Try again; if it fails again, check the "
                    + "disk and the system log."
            )
        }
        return problems
    }

    /// `true` if a line of a check reports a page that could not be read.
    private static func isFailedRead(_ problem: String) -> Bool {
        problem.split(separator: "\n").contains { line in
            // SQLite checks a page's number before it asks for the page, so only the read itself fails in this way.
            if line.contains("failed to get page") { return true }
            guard let code = line.split(separator: "error code=").last.flatMap({ Int32($0) }) else { return false }
            return [SQLITE_IOERR, SQLITE_NOMEM].contains(code & 0xff)
        }
    }
}
