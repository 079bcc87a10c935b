import Base
import Storage

/// The messages of `store copy`: its progress, its summary and its problems.
extension StoreCopy.Progress {
    var line: String {
        switch self {
        case .waiting(let rest):
            "waiting for leases of workers that do not answer, \(Int(rest.inSeconds.rounded(.up))) s"
        case .copied(let kind, let count, let all):
            "copied \(count) of \(all) \(kind.plural)\(Self.percentage(count, of: all))"
        case .compared(let kind, let count, let all):
            "compared \(count) of \(all) \(kind.plural)\(Self.percentage(count, of: all))"
        }
    }

    private static func percentage(_ count: Int, of all: Int) -> String { all > 0 ? " (\(count * 100 / all) %)" : "" }
}

extension StoreCopy.Summary {
    func text(from source: DatabaseLocation, to target: DatabaseLocation) -> String {
        let kinds = ArchiveRecord.Kind.allCases.map { "\(counts[$0] ?? 0) \($0.plural)" }
        let all = counts.values.reduce(0, +)
        let earlier = all > copiedNow ? " (\(all - copiedNow) of them before this was interrupted)" : ""
        return """
            copied \(source) to \(target): \(all.counted("record"))\(earlier)
            \(kinds.joined(separator: ", "))
            both databases have the same content: SHA-256 \(digest)
            Next: set REFRESH_WORKER_DATABASE to the new database on every machine, give each the same key ring, run \
            refresh-worker doctor, then start the workers. The old database is marked as moved, so that workers and commands that \
            change anything refuse it; keep it, with a backup of the key ring, until the workers run without problems.
            """
    }

    /// Adds the summary for programs.
    func write(from source: DatabaseLocation, to target: DatabaseLocation, into line: inout JSONLine) {
        line.field("from", "\(source)")
        line.field("to", "\(target)")
        line.field("records", counts.values.reduce(0, +))
        line.field("copied_now", copiedNow)
        line.object("records_by_kind") { object in
            for kind in ArchiveRecord.Kind.allCases { object.field(kind.rawValue, counts[kind] ?? 0) }
        }
        line.field("sha256", "\(digest)")
    }
}

extension ArchiveRecord.Kind {
    var plural: String {
        switch self {
        case .user: "users"
        case .grant: "grants"
        case .event: "events"
        case .session: "sessions"
        case .clientHealth: "clients"
        case .identifier: "identifiers of security events and of used or ended tokens"
        case .notice: "notices"
        }
    }
}

extension CommandError {
    init(_ failure: StoreCopyError, from source: DatabaseLocation, to target: DatabaseLocation) {
        switch failure {
        case .workers(let side, let names):
            let location = side == .source ? source : target
            self.init(
                .leftForLater,
                """
                workers use \(location) (\(names.joined(separator: ", "))): stop them, and cron, on every machine; a killed \
                worker counts as live for \(WorkerReport.lifetime.inWholeUnits)
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
        case .server(let address):
            "psql \(address.urlForPostgres.shellWord) -c 'DROP SCHEMA \(address.schema.identifier) CASCADE'"
        }
    }
}
