package import Base
private import Glibc

/// The key ring on disk: comments (`#`) and one key per line.
///
/// The first key without "pending" or "retired" seals.
///
///     # a comment
///     9f86d081 q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=
///     2c26b46b AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8= pending
///     6b23c0d5 ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8= retired 1795342272
///
/// Every call blocks on the disk. A rewrite also blocks while another process rewrites the same file. Do not make these
/// calls on the cooperative pool.
package enum KeyRingFile {
    static let maximumSize = 65536

    /// Reads the ring from a file that only its owner, who must be the caller, can read.
    ///
    /// If systemd has set `$CREDENTIALS_DIRECTORY`, a file in that directory can belong to root and be readable by the
    /// group, as `LoadCredential=` makes it: the directory itself is closed to other users
    /// (https://systemd.io/CREDENTIALS/).
    package static func load(
        path: String,
        credentialsDirectory: String? = nil
    ) throws(KeyRingFileError) -> KeyRing {
        let file = try open(path, namedBy: path)
        let status = try addingPath(path) { () throws(SystemCallError) in try file.status() }
        let isCredential = credentialsDirectory.map { isInside(path, in: $0) } ?? false
        try check(status, isCredential: isCredential, path: path)
        return try document(in: file, path: path).ring
    }

    /// Creates a file with one new key, and fails if the file exists.
    package static func generate(path: String) throws(KeyRingFileError) -> KeyID {
        let key = try newKey(path: path, isPending: false)
        let document = try KeyRingDocument(key: key, path: path)
        do throws(SystemCallError) {
            try AtomicFile.create(path: path, content: document.text, temporary: "\(path).\(key.id).new")
        } catch {
            switch error.code {
            case EEXIST: throw KeyRingFileError(path: path, reason: .alreadyExists)
            case ENOENT: throw KeyRingFileError(path: path, reason: .folderMissing)
            default: throw KeyRingFileError(path: path, reason: .system(error))
            }
        }
        return key.id
    }

    /// Adds a new key that opens but does not seal until it is promoted.
    package static func addPending(path: String) throws(KeyRingFileError) -> KeyID {
        let key = try newKey(path: path, isPending: true)
        try rewrite(path) { (document) throws(KeyRingFileError) in try document.append(key) }
        return key.id
    }

    /// Makes a key the first and active one, so that it seals.
    ///
    /// A second call changes nothing.
    package static func promote(_ id: KeyID, path: String) throws(KeyRingFileError) {
        try rewrite(path) { (document) throws(KeyRingFileError) in try document.promote(id) }
    }

    /// Retires a key: it opens but never seals again.
    ///
    /// The key that seals is refused.
    package static func retire(_ id: KeyID, at now: Timestamp, path: String) throws(KeyRingFileError) {
        try rewrite(path) { (document) throws(KeyRingFileError) in try document.retire(id, at: now) }
    }

    /// Removes a key permanently.
    ///
    /// The key that seals, and therefore the last one, is refused.
    ///
    /// Only the caller can know if a stored value still needs the key.
    package static func remove(_ id: KeyID, path: String) throws(KeyRingFileError) {
        try rewrite(path) { (document) throws(KeyRingFileError) in try document.remove(id) }
    }

    private static func newKey(path: String, isPending: Bool) throws(KeyRingFileError) -> SealingKey {
        do throws(SealError) {
            return try SealingKey.random(isPending: isPending)
        } catch {
            throw KeyRingFileError(path: path, reason: .sealing(error))
        }
    }
}

extension KeyRingFile {
    /// Changes the content under the file's lock and replaces the file.
    ///
    /// A symbolic link is kept: the file that it points to is replaced.
    private static func rewrite(
        _ path: String,
        _ change: (inout KeyRingDocument) throws(KeyRingFileError) -> Void
    ) throws(KeyRingFileError) {
        let target = try addingPath(path) { () throws(SystemCallError) in try AtomicFile.resolve(path) }
        let file = try openLocked(target, namedBy: path)
        let status = try addingPath(path) { () throws(SystemCallError) in try file.status() }
        try check(status, isCredential: false, path: path)
        var document = try document(in: file, path: path)
        try change(&document)
        let text = document.text
        guard text.count <= maximumSize else {
            throw KeyRingFileError(path: path, reason: .tooLarge(limit: maximumSize))
        }
        try addingPath(path) { () throws(SystemCallError) in
            try AtomicFile.replace(path: target, content: text, permissions: status.permissions)
        }
    }

    /// Opens the file and waits for its lock, and retries if another process has replaced the file since it was opened.
    private static func openLocked(_ target: String, namedBy path: String) throws(KeyRingFileError) -> OpenFile {
        while true {
            let file = try open(target, namedBy: path)
            let isCurrent = try addingPath(path) { () throws(SystemCallError) in
                try file.lock()
                let current = try OpenFile(path: target, flags: O_RDONLY | O_NONBLOCK).status()
                return try file.status() == current
            }
            if isCurrent { return file }
        }
    }

    /// Returns `true` if the path is inside the folder and has no `..` in it.
    private static func isInside(_ path: String, in folder: String) -> Bool {
        let prefix = folder.hasSuffix("/") ? folder : folder + "/"
        return path.hasPrefix(prefix) && !path.split(separator: "/").contains("..")
    }

    /// Opens without blocking on a pipe, which is then refused because it is not a regular file.
    private static func open(_ target: String, namedBy path: String) throws(KeyRingFileError) -> OpenFile {
        try addingPath(path) { () throws(SystemCallError) in
            try OpenFile(path: target, flags: O_RDONLY | O_NONBLOCK)
        }
    }

    private static func check(
        _ status: FileIdentity,
        isCredential: Bool,
        path: String
    ) throws(KeyRingFileError) {
        let user = geteuid()
        guard status.isRegular else { throw KeyRingFileError(path: path, reason: .notRegular) }
        guard status.owner == user || (isCredential && status.owner == 0) else {
            throw KeyRingFileError(path: path, reason: .foreignOwner(owner: status.owner, user: user))
        }
        guard status.permissions & (isCredential ? 0o037 : 0o077) == 0 else {
            throw KeyRingFileError(path: path, reason: .openToOthers(mode: status.permissions))
        }
    }

    private static func document(
        in file: borrowing OpenFile,
        path: String
    ) throws(KeyRingFileError) -> KeyRingDocument {
        let text: Secret?
        do throws(SystemCallError) {
            text = try file.read(limit: maximumSize)
        } catch {
            throw KeyRingFileError(path: path, reason: .system(error))
        }
        guard let text else { throw KeyRingFileError(path: path, reason: .tooLarge(limit: maximumSize)) }
        return try KeyRingDocument(text: text, path: path)
    }

    /// Runs calls on an existing file, and adds its path to their errors.
    private static func addingPath<Result: ~Copyable>(
        _ path: String,
        _ body: () throws(SystemCallError) -> Result
    ) throws(KeyRingFileError) -> Result {
        do throws(SystemCallError) {
            return try body()
        } catch {
            switch error.code {
            case ENOENT, ENOTDIR: throw KeyRingFileError(path: path, reason: .missing)
            case EACCES: throw KeyRingFileError(path: path, reason: .notAllowed)
            default: throw KeyRingFileError(path: path, reason: .system(error))
            }
        }
    }
}

/// An error in a key ring's file: the place and the fix.
///
/// It never quotes the file.
package struct KeyRingFileError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Reason: Hashable, Sendable {
        case missing
        case folderMissing
        case alreadyExists
        case notAllowed
        case notRegular
        /// Users other than its owner can read or write it.
        ///
        /// The value is its permission bits.
        case openToOthers(mode: UInt32)
        case foreignOwner(owner: UInt32, user: UInt32)
        case tooLarge(limit: Int)
        /// A line that does not have the expected form, which the text describes.
        case malformedLine(String)
        case duplicateKey(KeyID)
        case noSealingKey
        case unknownKey(KeyID)
        /// The key cannot be removed because it is the one that seals.
        case sealingKey(KeyID)
        case system(SystemCallError)
        case sealing(SealError)
    }

    package let path: String
    /// The faulty line, counted from 1, if the error is in a line.
    var line: Int?
    package let reason: Reason

    /// `true` if the file might be usable later without a change by the operator.
    package var mayPass: Bool {
        if case .system(let error) = reason { error.mayPass } else { false }
    }

    package var description: String {
        guard let line else { return "key file \(path) \(detail)" }
        return "key file \(path), line \(line): \(detail)"
    }

    /// The description for a process that has the keys in memory: new keys would not open what these have sealed.
    package var descriptionWhileInUse: String {
        guard reason == .missing else { return description }
        return "key file \(path) does not exist any more: put it back, or restore it from a backup"
    }

    private var detail: String {
        switch reason {
        case .missing:
            "does not exist: restore it from its copy, because a new key ring cannot open stored tokens; only if none "
                + "is stored yet, run: refresh-worker keys generate --key-file \(path)"
        case .folderMissing:
            "cannot be created, because its folder does not exist: create the folder first"
        case .alreadyExists:
            "exists already and was not changed: remove it only if no stored token is sealed with its keys"
        case .notAllowed:
            "is not readable by this user: run the command as the file's owner"
        case .notRegular:
            "is not a regular file: give the path of a file that `refresh-worker keys generate` made"
        case .openToOthers(let mode):
            "is readable by others (mode \(Self.octal(mode))): run: chmod 600 \(path)"
        case .foreignOwner(let owner, let user):
            // A file that root takes over locks out the service.
            "belongs to user id \(owner), but user id \(user) is running: run the command as the owner: "
                + "runuser -u \"$(id -nu \(owner))\" -- refresh-worker …"
        case .tooLarge(let limit):
            "is larger than \(limit) bytes: it is not a key file, or has retired keys to remove"
        case .malformedLine(let expectation):
            "\(expectation): fix the line, or restore the file from a backup"
        case .duplicateKey(let id):
            "key \(id) is in the file twice: remove one of the two lines"
        case .noSealingKey:
            "has no key that seals: restore it from a backup, or remove the word \"pending\" from a key's line"
        case .unknownKey(let id):
            "has no key \(id): run: refresh-worker keys list"
        case .sealingKey(let id):
            "still seals with key \(id): promote another key first"
        case .system(let error):
            "cannot be used: \(error)"
        case .sealing(let error):
            "cannot get a new key: \(error)"
        }
    }

    private static func octal(_ mode: UInt32) -> String {
        let digits = String(mode, radix: 8)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}
