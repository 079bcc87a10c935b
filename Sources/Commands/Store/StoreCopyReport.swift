import Base
import Storage
import Worker

/// The messages of `store copy`: its progress, its summary and its problems.
enum StoreCopyReport {
    static func line(of progress: StoreCopy.Progress) -> String {
        switch progress {
        case .waiting(let rest):
            "waiting for leases of workers that do not answer, \(Int(rest.inSeconds.rounded(.up))) s"
        case .copied(let kind, let count, let all): "copied \(count) of \(all) \(kind.plural)\(percentage(count, all))"
        case .compared(let kind, let count, let all):
            "compared \(count) of \(all) \(kind.plural)\(percentage(count, all))"
        }
    }

    static func text(of summary: StoreCopy.Summary, from source: DatabaseLocation, to target: DatabaseLocation)
        -> String
    {
        let counts = ArchiveRecord.Kind.allCases.map { "\(summary.counts[$0] ?? 0) \($0.plural)" }
        let all = summary.counts.values.reduce(0, +)
        let copiedBefore = all - summary.copiedNow
        let earlier = copiedBefore > 0 ? " (\(copiedBefore) of them before this was interrupted)" : ""
        return """
            copied \(source) to \(target): \(all) records\(earlier)
            \(counts.joined(separator: ", "))
            both databases have the same content: SHA-256 \(summary.digest)
            Next: set REFRESH_WORKER_DATABASE to the new database on every machine, give each the same key ring, run \
            refresh-worker doctor, then start the workers. The old database is marked as moved, so that workers and commands that \
            change anything refuse it; keep it, with a backup of the key ring, until the workers run without problems.
            """
    }

    /// Adds the summary for programs.
    static func write(
        _ summary: StoreCopy.Summary,
        from source: DatabaseLocation,
        to target: DatabaseLocation,
        to line: inout JSONLine
    ) {
        line.field("from", "\(source)")
        line.field("to", "\(target)")
        line.field("records", summary.counts.values.reduce(0, +))
        line.field("copied_now", summary.copiedNow)
        line.object("records_by_kind") { object in
            for kind in ArchiveRecord.Kind.allCases { object.field(kind.rawValue, summary.counts[kind] ?? 0) }
        }
        line.field("sha256", "\(summary.digest)")
    }

    /// Returns the name of a database in a form that is valid from any folder, for users of the copied database.
    static func title(of location: DatabaseLocation) -> String {
        switch location {
        case .file(let path): "the SQLite file \(FileStatus.absolute(path))"
        case .server(let address): "PostgreSQL at \(address.url)"
        }
    }

    private static func percentage(_ count: Int, _ all: Int) -> String { all > 0 ? " (\(count * 100 / all) %)" : "" }
}

extension ArchiveRecord.Kind {
    var plural: String {
        switch self {
        case .user: "users"
        case .grant: "grants"
        case .event: "events"
        case .session: "sessions"
        case .clientHealth: "clients"
        case .securityEvent: "security events"
        case .notice: "notices"
        }
    }
}

extension CommandFailure {
    init(_ failure: StoreCopy.Failure, from source: DatabaseLocation, to target: DatabaseLocation) {
        switch failure {
        case .workers(let side, let names):
            let location = side == .source ? source : target
            self.init(
                .leftForLater,
                """
                workers use \(location) (\(names.joined(separator: ", "))): stop them, and cron, on every machine; a killed \
                worker counts as live for 30 seconds
                """
            )
        case .occupied:
            self.init(
                .cannotCreate,
                "\(target) contains data already and was not changed: name an empty database with --to"
            )
        case .differs(let kind, let sourceDigest, let copyDigest):
            self.init(
                .badData,
                """
                the \(kind.plural) of \(target) are not those of \(source) (\(copyDigest.count) records, SHA-256 \
                \(copyDigest); \(sourceDigest.count) records, SHA-256 \(sourceDigest)): it was begun as a copy of something else, or a \
                worker has used one of them since
                \(target) cannot be used by a worker in this state. To copy again, empty it first: \(Self.emptying(target))
                """
            )
        }
    }

    private static func emptying(_ target: DatabaseLocation) -> String {
        switch target {
        case .file(let path):
            "rm -f -- \(["", "-wal", "-shm", ".reserve"].map { (path + $0).shellWord }.joined(separator: " ")) \(path.shellWord)-leases-*"
        case .server(let address): "psql \(address.url.shellWord) -c 'DROP SCHEMA refresh_worker CASCADE'"
        }
    }
}
