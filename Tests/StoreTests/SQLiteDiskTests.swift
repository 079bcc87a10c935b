import Testing

/// The suites that share the failing disk, one test at a time.
@Suite("The SQLite store on a disk that fails", .serialized)
struct SQLiteDiskTests {}
