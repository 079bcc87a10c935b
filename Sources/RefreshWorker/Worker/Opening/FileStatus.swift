import Base
import Crypto
import Glibc
import Telemetry

/// The metadata of a file, without opening it, except for the schema of a database that no other part has open.
///
/// Opening and closing a database file would drop the locks that SQLite has on it in the same process
/// (https://sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_).
struct FileStatus: Equatable, Sendable {
    enum Kind: Equatable, Sendable {
        case regular
        case folder
        case other
    }

    static let maximumLinks = 40  // as many as the kernel follows

    var kind: Kind
    /// The twelve permission bits.
    var permissions: UInt32
    var owner: UInt32
    var size: Int64
    var modifiedAt: Timestamp

    /// The permission bits as `chmod` takes them.
    var mode: String {
        let digits = String(permissions, radix: 8)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }

    /// Returns the facts of the file that a path leads to, following symbolic links, or `nil` if the file does not
    /// exist.
    static func of(_ path: String) throws(SystemCallError) -> FileStatus? {
        var facts = stat()
        guard unsafe stat(path, &facts) == 0 else {
            let code = errno
            guard code == ENOENT || code == ENOTDIR else {
                throw SystemCallError(call: "stat of \(path)", code: code)
            }
            return nil
        }
        let kind: Kind =
            switch facts.st_mode & S_IFMT {
            case S_IFREG: .regular
            case S_IFDIR: .folder
            default: .other
            }
        return FileStatus(
            kind: kind,
            permissions: facts.st_mode & 0o7777,
            owner: facts.st_uid,
            size: Int64(facts.st_size),
            modifiedAt: Timestamp(
                milliseconds: Int64(facts.st_mtim.tv_sec) * 1000 + Int64(facts.st_mtim.tv_nsec) / 1_000_000
            )
        )
    }

    /// Returns the absolute path of an existing file with all links resolved.
    ///
    /// Any other path is returned unchanged.
    static func absolute(_ path: String) -> String {
        guard let resolved = unsafe realpath(path, nil) else { return path }
        defer { unsafe free(resolved) }
        return unsafe String(cString: resolved)
    }

    /// Returns the absolute path, in which links stay.
    ///
    /// A file that is restored to this path is found under the configured name, on a machine without these links too.
    static func restorable(_ path: String) -> String {
        var parts: [Substring] = []
        for part in (path.hasPrefix("/") ? path : "\(absolute("."))/\(path)").split(separator: "/") where part != "." {
            // tar restores no path that has this part.
            if part == ".." { _ = parts.popLast() } else { parts.append(part) }
        }
        return "/" + parts.joined(separator: "/")
    }

    /// Returns the path that symbolic links lead to.
    ///
    /// Nothing has to exist there.
    static func linkedPath(_ path: String) -> String {
        var path = path
        for _ in 0..<maximumLinks {
            let text = link(path)
            guard !text.isEmpty else { break }
            path = text.hasPrefix("/") ? text : "\(path.parentFolder)/\(text)"
        }
        return path
    }

    /// Returns what a symbolic link holds, or an empty text if it cannot be read.
    static func link(_ path: String) -> String {
        var target = [CChar](repeating: 0, count: Int(PATH_MAX))
        let length = unsafe readlink(path, &target, target.count)
        return String(decoding: target.prefix(max(0, length)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    static func mayRead(_ path: String) -> Bool { unsafe access(path, R_OK) == 0 }

    static func mayWrite(_ path: String) -> Bool { unsafe access(path, W_OK) == 0 }
}

extension CommandContext {
    /// Reads a file that a setting names.
    func read(_ path: String, for flag: String, orElse advice: String = "") throws(CommandError) -> [UInt8] {
        do throws(InputError) {
            return try inputs.files.read(path)
        } catch {
            let code: ExitCode = error.mayPass ? .inputOutput : .configuration
            throw CommandError(code, "\(flag): \(path) \(error.message)\(advice)")
        }
    }

    /// Reads a file that holds a secret, if its permissions keep it private.
    ///
    /// Blocks for a moment. `unreadable` is the exit code if the system refuses the file permanently.
    static func readPrivate(
        _ path: String,
        for flag: String,
        unreadable: ExitCode = .configuration
    ) throws(CommandError) -> Secret {
        do throws(FileError) {
            return try Secret.read(privateFile: path)
        } catch {
            let code: ExitCode =
                switch error.kind {
                case .system: error.mayPass ? .inputOutput : unreadable
                default: .configuration
                }
            throw CommandError(code, "\(flag): \(error)")
        }
    }

    /// Reads the secrets of confidential clients, which are none if no file is configured.
    static func clientSecrets(of configuration: Configuration) throws(CommandError) -> ClientSecretFile {
        guard let path = configuration.clientSecretFile else { return ClientSecretFile() }
        let text = try readPrivate(path, for: ClientSecretFile.flag)
        let file = try ClientSecretFile(parsing: text, path: path, clientIDs: configuration.allClientIDs)
        if let id = configuration.serverClientID, file.secrets[id] == nil {
            throw CommandError(
                .configuration,
                """
                --server-client-id: \(path) has no secret of \(DisplayedText(id)): add a line with this client id, a blank and \
                its secret, which the Google Cloud console shows at the client of your server
                """
            )
        }
        return file
    }

    /// Logs the client ids in the file of client secrets that are not configured.
    func warn(about clientSecrets: ClientSecretFile) {
        let ids = clientSecrets.unconfiguredClientIDs
        guard !ids.isEmpty, let path = configuration.clientSecretFile else { return }
        diagnostics.warning(
            "client ids that are not configured have secrets, which are used for their stored grants: see doctor",
            [
                "file": path, "client_ids": ids.joined(separator: ", "),
                "without_secret": clientSecrets.clientIDsWithoutSecret.joined(separator: ", "),
            ]
        )
    }
}

/// The files that a SQLite database in use leaves beside it.
///
/// If the database itself is missing, they show that there was one: it was deleted or moved, or a file system is not
/// mounted over this folder.
enum LeftoverFiles {
    /// The ends of names such as `grants.sqlite-wal`.
    private static let suffixes = ["-wal", "-shm", ".reserve"]
    /// The middles of names such as `grants.sqlite-leases-4fd…`.
    private static let suffixBeginnings = ["-leases-", ".unsaved-", ".writing-", ".set-aside-"]

    /// Returns those of the names in a folder that belong to the database of this name.
    static func names(ofDatabase database: String, among names: [String]) -> [String] {
        names.filter { name in
            guard name.hasPrefix(database) else { return false }
            let rest = String(name.dropFirst(database.count))
            return suffixes.contains(rest) || suffixBeginnings.contains { rest.hasPrefix($0) }
        }
    }

    /// Returns the names of the files beside a database that does not exist, or none beside one that does.
    static func besideMissing(_ path: String) throws(SystemCallError) -> [String] {
        guard try FileStatus.of(path) == nil else { return [] }
        // SQLite keeps the other files beside the file that a link names.
        let path = FileStatus.linkedPath(path)
        let found = names(ofDatabase: path.fileName, among: try Folder.names(in: path.parentFolder))
        // Another process might have created the database since.
        return try FileStatus.of(path) == nil ? found : []
    }

    /// The problem of a missing database with leftovers.
    static func finding(_ path: String, _ leftovers: [String]) -> String {
        "the database \(path) is missing, although files of it are there (\(leftovers.joined(separator: ", ")))"
    }

    static let advice = """
        mount its disk, or restore it (docs/runbook.md#the-database-is-lost); to begin with an empty database instead, \
        move these files to another folder first
        """
}

extension CommandError {
    init(_ leftovers: [String], besideMissing path: String) {
        self.init(.configuration, "\(LeftoverFiles.finding(path, leftovers)): \(LeftoverFiles.advice)")
    }
}
