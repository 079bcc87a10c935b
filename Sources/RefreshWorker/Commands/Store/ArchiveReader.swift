import Base
import Glibc

/// A tar archive that `backup --archive` made, or a plain copy of the database, open for reading.
///
/// It takes only what that command writes: regular files, each with an absolute path. Links, folders and devices are
/// refused, because they would let the archive write elsewhere.
final class ArchiveReader {
    /// One file of the archive.
    struct Entry: Equatable {
        let path: String
        /// The permission bits, without those that give the rights of the owner.
        let permissions: UInt32
        let owner: String
        let size: Int64
        /// The place of the content.
        fileprivate let offset: Int64
    }

    private static let blockSize: Int64 = 512
    /// A database, a configuration file and the files that it can name are far fewer.
    private static let maximumEntries = 1000
    private static let databaseMark = Array("SQLite format 3\0".utf8)

    let path: String
    private let descriptor: Int32
    private let size: Int64

    init(_ path: String) throws {
        self.path = path
        descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            let error = SystemCallError(call: "open", code: errno)
            let advice = error.code == EACCES ? FileOwner.advice(onDenied: path) : ""
            throw CommandError(.inputUnreadable, "\(path) cannot be read: \(error.reason)\(advice)")
        }
        var facts = stat()
        let isRead = unsafe fstat(descriptor, &facts) == 0
        size = Int64(facts.st_size)
        guard isRead, facts.st_mode & S_IFMT == S_IFREG else {
            throw CommandError(.inputUnreadable, "\(path) is not a regular file")
        }
    }

    deinit { close(descriptor) }

    /// Returns the files, of which the first is the database. A plain copy is one file, for `database`.
    func entries(database: String) throws -> [Entry] {
        if try bytes(at: 0, count: Self.databaseMark.count) == Self.databaseMark {
            return [Entry(path: database, permissions: 0o600, owner: "", size: size, offset: 0)]
        }
        var entries: [Entry] = []
        var offset: Int64 = 0
        while true {
            let header = try bytes(at: offset, count: Int(Self.blockSize))
            guard header.contains(where: { $0 != 0 }) else { break }
            let entry = try entry(header, at: offset + Self.blockSize)
            entries.append(entry)
            offset = entry.offset + (entry.size + Self.blockSize - 1) / Self.blockSize * Self.blockSize
            guard entries.count <= Self.maximumEntries else { throw refusal("has too many files") }
        }
        guard let first = entries.first, try isDatabase(first) else {
            throw refusal("does not begin with a database")
        }
        guard Set(entries.map(\.path)).count == entries.count else { throw refusal("has a file twice") }
        return entries
    }

    private func isDatabase(_ entry: Entry) throws -> Bool {
        guard entry.size >= Self.databaseMark.count else { return false }
        return try bytes(at: entry.offset, count: Self.databaseMark.count) == Self.databaseMark
    }

    private func entry(_ header: [UInt8], at offset: Int64) throws -> Entry {
        func text(_ range: Range<Int>) -> String { String(decoding: header[range].prefix { $0 != 0 }, as: UTF8.self) }
        func octal(_ range: Range<Int>) -> Int64? { Int64(text(range).filter { $0 != " " }, radix: 8) }
        let sum = header.enumerated().reduce(0) { $0 + (148..<156 ~= $1.offset ? 32 : Int64($1.element)) }
        guard octal(148..<156) == sum, header[257..<262].elementsEqual("ustar".utf8) else {
            throw refusal("is no archive of refresh-worker backup, or is damaged at byte \(offset - Self.blockSize)")
        }
        // The form of GNU for 8 GiB and more: see the writer.
        let large = header[128..<136].reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
        let length = header[124] == 0x80 ? Int64(clamping: large) : octal(124..<136)
        let prefix = text(345..<500)
        let path = "/" + (prefix.isEmpty ? "" : prefix + "/") + text(0..<100)
        let isClean = !path.contains("//") && !path.split(separator: "/").contains { $0 == ".." || $0 == "." }
        let isFile = header[156] == UInt8(ascii: "0")
        guard isFile, isClean, path.count > 1, let mode = octal(100..<108) else {
            throw refusal("has a link, a folder or a path that refresh-worker backup does not write")
        }
        guard let length, length >= 0, length <= size - offset else {
            throw refusal("ends before the end of \(DisplayedText(path)): it was not copied completely")
        }
        return Entry(
            path: path,
            permissions: UInt32(mode & 0o777),
            owner: text(265..<297),
            size: length,
            offset: offset
        )
    }

    private func bytes(at offset: Int64, count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let read = unsafe bytes.withUnsafeMutableBytes { buffer in
                unsafe pread(
                    descriptor,
                    buffer.baseAddress?.advanced(by: done),
                    count - done,
                    off_t(offset) + off_t(done)
                )
            }
            if read < 0, errno == EINTR { continue }
            guard read >= 0 else { throw SystemCallError(call: "read of \(path)", code: errno) }
            guard read > 0 else { throw refusal("ends too early: it was not copied completely") }
            done += read
        }
        return bytes
    }

    private func refusal(_ problem: String) -> CommandError {
        CommandError(.badData, "\(path) \(problem); nothing was changed")
    }

    /// Returns `true` if a file has the content of an entry.
    func holds(_ entry: Entry, sameAs file: String) throws -> Bool {
        guard let status = try FileStatus.of(file), status.kind == .regular, status.size == entry.size else {
            return false
        }
        guard entry.size <= 1 << 20, FileStatus.mayRead(file) else { return false }
        do {
            let present = try FileReader.system.read(file)
            return try bytes(at: entry.offset, count: Int(entry.size)) == present
        } catch {
            // A file that cannot be compared counts as different.
            return false
        }
    }

    /// Writes an entry into a new file, durably.
    ///
    /// For root the file gets the owner of its folder, which is the worker's user.
    func write(_ entry: Entry, to temporary: String) throws(SystemCallError) {
        let output = unsafe open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard output >= 0 else { throw SystemCallError(call: "open of \(temporary)", code: errno) }
        defer { close(output) }
        var offset = off_t(entry.offset)
        let end = offset + off_t(entry.size)
        while offset < end {
            let count = unsafe sendfile(output, descriptor, &offset, min(Int(end - offset), 1 << 30))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw SystemCallError(call: "write of \(temporary)", code: count < 0 ? errno : EIO) }
        }
        var folder = stat()
        if geteuid() == 0, unsafe stat(temporary.parentFolder, &folder) == 0 {
            guard fchown(output, folder.st_uid, folder.st_gid) == 0 else {
                throw SystemCallError(call: "chown of \(temporary)", code: errno)
            }
        }
        guard fchmod(output, entry.permissions) == 0, fsync(output) == 0 else {
            throw SystemCallError(call: "fsync of \(temporary)", code: errno)
        }
    }
}
