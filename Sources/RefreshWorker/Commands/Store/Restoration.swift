import Base
import Glibc
import Storage

/// Puts the files of a backup in place.
///
/// What is likely to fail comes before the first change: the archive is checked, and its files are written under
/// other names. Then the former ones are renamed, and the new ones get their names.
struct Restoration {
    private typealias Entry = ArchiveReader.Entry

    private let archive: ArchiveReader
    private let entries: [Entry]
    private let configurationFile: String
    /// The files that root restores: those of its own configuration.
    private let ownFiles: Set<String>
    private let time: String
    private let ending: String

    init(of file: String, database: String, context: CommandContext) throws {
        archive = try ArchiveReader(file)
        entries = try archive.entries(database: database)
        let configuration = context.configuration
        configurationFile = configuration.configurationFile ?? Installation.file
        let files = configuration.restoredFiles(credentialsDirectory: nil)
        ownFiles = Set([database, configurationFile] + files.open + files.secret)
        time = "\(BackupSeries.stamp(context.time.now))"
        ending = ".restoring-" + String(SystemRandom().nextBits(), radix: 16)
    }

    /// Restores, and returns what to tell.
    func run() throws -> [String] {
        let database = entries[0]
        guard isAllowed(database) else {
            throw CommandError(
                .configuration,
                "\(archive.path) has the database \(database.path), and the configuration names another one: name it with --database"
            )
        }
        try refuseLink(database.path)
        try refuseIfInUse(database.path)
        var lines: [String] = []
        var written: [Entry] = []
        defer { for entry in entries { unsafe unlink(entry.path + ending) } }
        for entry in entries {
            do {
                switch try reasonToKeep(entry) {
                case .same: break
                case .told(let line): lines.append(line)
                case nil:
                    try archive.write(entry, to: entry.path + ending)
                    written.append(entry)
                }
            } catch let error as SystemCallError where entry != database {
                lines.append(
                    "not restored: \(entry.path), which belonged to \(entry.owner): \(error.reason). \(advice(entry))"
                )
            } catch let error as SystemCallError {
                throw CommandError(.cannotCreate, "\(entry.path) cannot be written: \(error); nothing was changed")
            }
        }
        let copy = database.path + ending
        guard FileStatus.schema(ofDatabaseFile: copy) != nil, !SQLiteStore.isDamaged(copy) else {
            throw CommandError(
                .badData,
                "the database in \(archive.path) is damaged; nothing was changed: take an older backup"
            )
        }
        try refuseIfInUse(database.path)
        for entry in written {
            if let former = try moveAway(entry.path, isDatabase: entry == database) {
                lines.append("kept what was there as \(former)")
            }
            try Folder.publish(entry.path + ending, as: entry.path)
            lines.append("restored \(entry.path), \(entry.size.inBytes)")
        }
        return lines
    }

    /// Root restores no other file: the archive can be of a user who should not choose what root writes.
    private func isAllowed(_ entry: Entry) -> Bool { geteuid() != 0 || ownFiles.contains(entry.path) }

    /// Why a file stays as it is.
    private enum Kept {
        case same
        /// The operator must hear of it, in this line.
        case told(String)
    }

    /// Returns `nil` for a file to restore.
    private func reasonToKeep(_ entry: Entry) throws -> Kept? {
        guard isAllowed(entry) else {
            return .told("not restored: \(entry.path), which the configuration does not name. \(advice(entry))")
        }
        guard entry != entries[0], try FileStatus.of(entry.path) != nil else { return nil }
        if try archive.holds(entry, sameAs: entry.path) { return .same }
        guard entry.path != configurationFile else { return nil }
        return .told("kept \(entry.path), which differs from the one in the backup. \(advice(entry))")
    }

    private func advice(_ entry: Entry) -> String {
        "To see that: tar --extract --to-stdout --file \(archive.path.shellWord) \(entry.path.dropFirst())"
    }

    /// The former database of a link would be moved without its content.
    private func refuseLink(_ database: String) throws {
        let target = PathResolver.linkTarget(database)
        guard target.isEmpty else {
            throw CommandError(
                .configuration,
                """
                the database \(database) is a link to \(target); nothing was changed. Name the file itself with --database, \
                and run it again
                """
            )
        }
    }

    private func refuseIfInUse(_ database: String) throws {
        guard !SQLiteStore.isInUse(database) else {
            throw CommandError(
                .leftForLater,
                """
                a process has the database \(database) open; nothing was changed. Stop the worker first: systemctl stop \
                refresh-worker.socket refresh-worker refresh-worker-once.timer
                """
            )
        }
    }

    /// Moves a former file away, and returns its new place.
    private func moveAway(_ path: String, isDatabase: Bool) throws -> String? {
        guard isDatabase else { return try rename(path, to: "\(path).former-\(time)") }
        let former = ([""] + DatabaseFile.companionEndings).map { path + $0 }.filter { FileIdentity(path: $0) != nil }
        guard !former.isEmpty else { return nil }
        let folder = "\(path.parentFolder)/former-\(time)"
        guard unsafe mkdir(folder, 0o700) == 0 else { throw SystemCallError(call: "mkdir of \(folder)", code: errno) }
        for file in former { _ = try rename(file, to: "\(folder)/\(file.fileName)") }
        return "\(folder)/\(path.fileName)"
    }

    private func rename(_ path: String, to target: String) throws(SystemCallError) -> String? {
        guard unsafe Glibc.rename(path, target) == 0 else {
            guard errno == ENOENT else { throw SystemCallError(call: "rename of \(path)", code: errno) }
            return nil
        }
        try Folder.synchronize(of: target)
        return target
    }
}
