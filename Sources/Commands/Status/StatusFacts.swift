import Base
import Crypto
private import Glibc
import Status
import Storage
import Worker

/// The facts of a report that `status --watch` compares: those that do not change by the passing of time alone.
struct StatusFacts: Equatable {
    /// A fact and its name, such as `grants` and `3 active, 1 retrying`.
    struct Fact: Equatable {
        let name: String
        let text: String
    }

    let facts: [Fact]

    init(_ report: StatusReport) {
        let states = report.statistics.statesInUse
        let clients = report.clients.map { client in
            let reason = client.breakerReason.map { " (\($0))" } ?? ""
            let wave = client.isWave ? ", in a wave of invalid_grant" : ""
            return Fact(
                name: "client \(DisplayedText(client.id))",
                text: "breaker \(client.breaker.rawValue)\(reason)\(wave)"
            )
        }
        let workers = report.workers.map(\.id).sorted().joined(separator: ", ")
        let concerns = report.judgement.concerns.filter { !$0.isAdvisory }.map(\.kind)
        facts =
            [Fact(name: "grants", text: states.isEmpty ? "none" : states.joined(separator: ", "))]
            + clients
            + [
                Fact(name: "workers", text: workers.isEmpty ? "none running" : workers),
                Fact(
                    name: "verdict",
                    text: concerns.isEmpty ? "all is well" : "needs attention: \(concerns.joined(separator: ", "))"
                ),
            ]
    }

    /// Returns the facts that differ from the former ones; all of them if there are none.
    func changes(since former: StatusFacts?) -> [Fact] {
        guard let former else { return facts }
        let gone = former.facts.filter { old in !facts.contains { $0.name == old.name } }
        return facts.filter { !former.facts.contains($0) } + gone.map { Fact(name: $0.name, text: "gone") }
    }
}

/// A file of results that the database has not stored, as `status` and `doctor` list it.
struct SpilledFile: Equatable, Sendable {
    var path: String
    /// `true` if a recovery failed, so that only `results recover` reads the file again.
    var isSetAside: Bool
    var writtenAt: Timestamp
    /// The number of results in it; `nil` if they cannot be counted.
    var results: Int?

    /// Returns the spill files at a location and those that were set aside, in the order of their names.
    ///
    /// It locks none of them: a worker that is about to save results would take its own file for one in use.
    static func list(in location: SpillLocation) throws(SystemCallError) -> [SpilledFile] {
        let names = try SpillFile.names(in: location.folder).filter { location.isSpill($0) || location.isSetAside($0) }
        return names.compactMap { name in
            let path = "\(location.folder)/\(name)"
            // A missing file was recovered by another process.
            guard let writtenAt = writeTime(of: path) else { return nil }
            let (isSetAside, results) = (location.isSetAside(name), count(in: path))
            // Reserved disk space that is still empty.
            guard results != 0 || isSetAside else { return nil }
            return SpilledFile(path: path, isSetAside: isSetAside, writtenAt: writtenAt, results: results)
        }
    }

    /// Describes the file and the command that stores its results.
    func sentence(at now: Timestamp) -> String {
        let content = results.map { $0 == 1 ? "1 result" : "\($0) results" } ?? "results that cannot be counted"
        let age = (now - writtenAt).inTwoUnits
        let command = "refresh-worker results recover \(path.shellWord)"
        return isSetAside
            ? "\(content) in \(path) could not all be stored, \(age) ago: fix what the log says of the file, then run: \(command)"
            : "\(content) in \(path) wait to be stored since \(age): start the worker, or run: \(command)"
    }

    private static func writeTime(of path: String) -> Timestamp? {
        do throws(SystemCallError) {
            return try FileStatus.of(path)?.modifiedAt
        } catch {
            return nil
        }
    }

    private static func count(in path: String) -> Int? {
        do throws(SystemCallError) {
            let file = try SpillFile.openIfThere(path, forReading: true)
            guard let bytes = try file?.read(limit: SpillFormat.maximumSize) else { return nil }
            let content = SpillFormat.read(bytes)
            return content.isDamaged && content.results.isEmpty ? nil : content.results.count
        } catch {
            return nil
        }
    }
}

/// The first hundred bytes of a database file (https://sqlite.org/fileformat.html#the_database_header).
///
/// Read it only while this process has no connection to the file: see ``FileStatus``. The newest pages may still be in
/// the log next to it; then the header is older.
struct DatabaseHeader: Equatable, Sendable {
    private static let length = 100
    private static let magic = Array("SQLite format 3\0".utf8)
    private static let versionOffset = 60

    /// The version of this program's tables (`PRAGMA user_version`); 0 before they exist.
    let schema: Int

    /// Parses the beginning of a file's content; `nil` if that is not a SQLite database.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= Self.length, bytes.starts(with: Self.magic) else { return nil }
        schema = bytes[Self.versionOffset..<Self.versionOffset + 4].reduce(0) { $0 << 8 | Int($1) }
    }

    /// Reads the header of a file; `nil` if it cannot be read or is not a database.
    static func read(_ path: String) -> DatabaseHeader? {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: length)
        let count = unsafe bytes.withUnsafeMutableBytes { buffer in
            unsafe Glibc.read(descriptor, buffer.baseAddress, buffer.count)
        }
        return DatabaseHeader(Array(bytes.prefix(max(0, count))))
    }
}
