import Base
import Glibc

/// A tar archive of files, each under its absolute path, so that root restores all of them with
/// `tar --extract --directory /`.
///
/// Written in the form of POSIX (https://pubs.opengroup.org/onlinepubs/9799919799/utilities/pax.html, ustar), which
/// every tar reads. The kernel copies the contents, so that no secret passes through this process.
final class BackupArchive: Sendable {
    private static let blockSize = 512
    /// What follows a file's name in those of its temporary files, before a random number. That of a plain copy is
    /// another, because its file is not locked.
    static let temporaryEnding = ".partial-archive-"

    private let descriptor: Int32
    private let path: String

    /// A name for the copy of the database that the archive is made from.
    var databaseCopy: String { path + ".database" }

    /// Creates a file that only its owner can read, beside the one that it becomes, and removes what a killed process
    /// has left there.
    init(for file: String) throws {
        _ = try Self.removeLeftovers(in: file.parentFolder) { $0 == file.fileName }
        path = file + Self.temporaryEnding + String(SystemRandom().nextBits(), radix: 16)
        descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw SystemCallError(call: "open of \(path)", code: errno) }
        // Locked until it is closed. Before that, another process can take it for a leftover.
        let isLocked = flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK
        var facts = stat()
        guard isLocked, unsafe fstat(descriptor, &facts) == 0, facts.st_nlink > 0 else {
            throw FileError("another backup to \(file) began at the same time", path: path)
        }
    }

    deinit { close(descriptor) }

    /// Removes the temporary files that killed processes have left of some archives in a folder, and returns their
    /// names.
    static func removeLeftovers(
        in folder: String,
        of isMeant: (_ archive: String) -> Bool
    ) throws(SystemCallError) -> [String] {
        var removed: [String] = []
        for name in try Folder.names(in: folder) {
            guard let ending = name.firstRange(of: temporaryEnding), isMeant(String(name[..<ending.lowerBound])) else {
                continue
            }
            let number = name[ending.upperBound...].prefix(while: \.isHexDigit)
            guard !number.isEmpty else { continue }
            let beginning = folder == "/" ? "/" : folder + "/"
            do throws(SystemCallError) {
                // Kept open, so that the lock holds until the file is removed.
                let held = try SpillFile.openIfThere(beginning + name[..<number.endIndex])
                guard try held?.tryLock() ?? true else { continue }
                try withExtendedLifetime(held) { () throws(SystemCallError) in try SpillFile.remove(beginning + name) }
                removed.append(name)
            } catch {
                // It belongs to another user, or is no file. The new one gets another name.
                continue
            }
        }
        return removed
    }

    func removeTemporaries() {
        unsafe unlink(path)
        unsafe unlink(databaseCopy)
    }

    /// Adds a file under its absolute path.
    ///
    /// The content can come from a copy of it.
    func add(_ file: String, contentOf copy: String? = nil) throws {
        var facts = stat()
        guard unsafe stat(file, &facts) == 0 else { throw SystemCallError(call: "stat of \(file)", code: errno) }
        let source = copy ?? file
        let input = unsafe open(source, O_RDONLY | O_CLOEXEC)
        guard input >= 0 else { throw SystemCallError(call: "open of \(source)", code: errno) }
        defer { close(input) }
        var content = stat()
        guard unsafe fstat(input, &content) == 0 else { throw SystemCallError(call: "fstat of \(source)", code: errno) }
        guard content.st_mode & S_IFMT == S_IFREG else { throw FileError("\(source) is no file", path: source) }
        let header = Self.header(
            path: PathResolver.restorable(file),
            mode: facts.st_mode & 0o7777,
            user: (facts.st_uid, Self.name(ofUser: facts.st_uid)),
            group: (facts.st_gid, Self.name(ofGroup: facts.st_gid)),
            size: Int64(content.st_size),
            modifiedAt: Int64(facts.st_mtim.tv_sec)
        )
        guard let header else {
            throw FileError("\(file) has a path that is too long for an archive", path: file)
        }
        try write(header)
        var rest = content.st_size
        while rest > 0 {
            let count = sendfile(descriptor, input, nil, min(rest, 1 << 30))
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw SystemCallError(call: "copy of \(source) to \(path)", code: errno) }
            guard count > 0 else { throw FileError("\(source) became shorter while it was copied", path: source) }
            rest -= count
        }
        let excess = content.st_size % Self.blockSize
        if excess > 0 { try write([UInt8](repeating: 0, count: Self.blockSize - excess)) }
    }

    /// Writes the end, and gives the durable file its name.
    ///
    /// An existing file is never replaced.
    func publish(as name: String) throws(SystemCallError) {
        try write([UInt8](repeating: 0, count: 2 * Self.blockSize))
        guard fsync(descriptor) == 0 else { throw SystemCallError(call: "fsync of \(path)", code: errno) }
        try Folder.publish(path, as: name)
    }

    private func write(_ bytes: [UInt8]) throws(SystemCallError) {
        var written = 0
        while written < bytes.count {
            let count = unsafe bytes[written...].withUnsafeBytes { rest in
                unsafe Glibc.write(descriptor, rest.baseAddress, rest.count)
            }
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw SystemCallError(call: "write to \(path)", code: errno) }
            written += count
        }
    }

    /// A name finds the user on a machine where it has another number.
    private static func name(ofUser id: uid_t) -> String {
        guard let entry = unsafe getpwuid(id) else { return "" }
        return unsafe String(cString: entry.pointee.pw_name)
    }

    private static func name(ofGroup id: gid_t) -> String {
        guard let entry = unsafe getgrgid(id) else { return "" }
        return unsafe String(cString: entry.pointee.gr_name)
    }
}
