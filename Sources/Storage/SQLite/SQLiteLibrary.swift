private import CSQLite

/// The SQLite library that this process runs with.
package enum SQLiteLibrary {
    package static var version: String { unsafe String(cString: sqlite3_libversion()) }

    /// `true` if the library can lose commits when a checkpoint overlaps a commit
    /// (https://sqlite.org/wal.html#walresetbug): 3.7.0 to 3.51.2, except for the repaired 3.44.6 and 3.50.7.
    package static var hasLogResetBug: Bool { hasLogResetBug(number: Int(sqlite3_libversion_number())) }

    static func hasLogResetBug(number: Int) -> Bool {
        switch number {
        case ..<3_007_000, 3_051_003...: false
        case 3_044_006..<3_045_000, 3_050_007..<3_051_000: false
        default: true
        }
    }
}
