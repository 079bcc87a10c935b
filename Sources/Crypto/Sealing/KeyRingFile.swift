package import Base
private import Glibc

/// The key ring on disk: comments (`#`) and one key per line.
///
/// The first key without another word seals. The first one with "binding", and not "retired", binds refresh tokens.
///
///     # a comment
///     9f86d081 q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=
///     2c26b46b AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8= pending
///     6b23c0d5 ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8= retired 1795342272
///     d7865a46 QEFCQ0RFRkdISUpLTE1OT1BRUlNUVVZXWFlaW1xdXl8= binding
///
/// With a ``KeyRingWrapping`` the file holds that text in another form.
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
    package static func load(path: String, credentialsDirectory: String? = nil) throws(FileError) -> KeyRing {
        let file = try open(path, namedBy: path)
        let status = try addingPath(path) { () throws(SystemCallError) in try file.status() }
        let isCredential = credentialsDirectory.map { isInside(path, in: $0) } ?? false
        try checkOwner(status, isCredential: isCredential, path: path)
        try checkMode(status, isCredential: isCredential, path: path)
        return try document(in: file, wrapping: nil, path: path).ring
    }

    /// Creates a file with one new key, and fails if the file exists.
    package static func generate(
        path: String,
        wrapping: (any KeyRingWrapping)? = nil
    ) throws(FileError) -> KeyID {
        let key = try newKey(path: path) { () throws(CryptoError) in try .random() }
        let content = try content(of: try KeyRingDocument(key: key, path: path), wrapping: wrapping, path: path)
        do throws(SystemCallError) {
            try OpenFile.create(path: path, content: content, temporary: "\(path).\(key.id).new")
        } catch {
            switch error.code {
            case EEXIST:
                throw FileError(
                    keyFile: path,
                    "exists already and was not changed: remove it only if no stored token is sealed with its keys"
                )
            case ENOENT:
                let detail = "cannot be created, because its folder does not exist: create the folder first"
                throw FileError(keyFile: path, detail, .folderMissing)
            default: throw FileError(keyFile: path, because: error)
            }
        }
        return key.id
    }

    /// Adds a new key that opens but does not seal until it is promoted.
    package static func addPending(
        path: String,
        wrapping: (any KeyRingWrapping)? = nil
    ) throws(FileError) -> KeyID {
        let key = try newKey(path: path) { () throws(CryptoError) in try .random(isPending: true) }
        try rewrite(path, wrapping: wrapping) { (document) throws(FileError) in try document.append(key) }
        return key.id
    }

    /// Adds a new binding key, to which refresh tokens are bound from now on.
    ///
    /// Those that are bound to another key stay bound to it.
    package static func addBinding(
        path: String,
        wrapping: (any KeyRingWrapping)? = nil
    ) throws(FileError) -> KeyID {
        let key = try newKey(path: path) { () throws(CryptoError) in try .randomBinding() }
        try rewrite(path, wrapping: wrapping) { (document) throws(FileError) in try document.insert(binding: key) }
        return key.id
    }

    /// Makes a key the first and active one, so that it seals.
    ///
    /// A second call changes nothing.
    package static func promote(
        _ id: KeyID,
        path: String,
        wrapping: (any KeyRingWrapping)? = nil
    ) throws(FileError) {
        try rewrite(path, wrapping: wrapping) { (document) throws(FileError) in try document.promote(id) }
    }

    /// Retires a key: it opens but never seals again. A binding key still signs, but no more tokens are bound to it.
    ///
    /// The key that seals is refused.
    package static func retire(
        _ id: KeyID,
        at now: Timestamp,
        path: String,
        wrapping: (any KeyRingWrapping)? = nil
    ) throws(FileError) {
        try rewrite(path, wrapping: wrapping) { (document) throws(FileError) in try document.retire(id, at: now) }
    }

    /// Removes a key permanently.
    ///
    /// The key that seals, and therefore the last one, is refused. Only the caller can know if a stored value still
    /// needs the key. No command removes a binding key.
    package static func remove(
        _ id: KeyID,
        path: String,
        wrapping: (any KeyRingWrapping)? = nil
    ) throws(FileError) {
        try rewrite(path, wrapping: wrapping) { (document) throws(FileError) in try document.remove(id) }
    }

    static func newKey(
        path: String,
        _ make: () throws(CryptoError) -> RingKey
    ) throws(FileError) -> RingKey {
        do throws(CryptoError) {
            return try make()
        } catch {
            throw FileError(keyFile: path, "cannot get a new key: \(error)", .library)
        }
    }
}

extension KeyRingFile {
    /// Changes the content under the file's lock and replaces the file.
    ///
    /// A symbolic link is kept: the file that it points to is replaced.
    private static func rewrite(
        _ path: String,
        wrapping: (any KeyRingWrapping)?,
        _ change: (inout KeyRingDocument) throws(FileError) -> Void
    ) throws(FileError) {
        let target = try addingPath(path) { () throws(SystemCallError) in try OpenFile.resolve(path) }
        let file = try openLocked(target, namedBy: path)
        let status = try addingPath(path) { () throws(SystemCallError) in try file.status() }
        try checkOwner(status, isCredential: false, path: path)
        if wrapping == nil {
            try checkMode(status, isCredential: false, path: path)
        } else {
            try checkWrapped(status, path: path)
        }
        var document = try document(in: file, wrapping: wrapping, path: path)
        try change(&document)
        let content = try content(of: document, wrapping: wrapping, path: path)
        // The programs of a key command can take a minute. A file that was put there meanwhile has other keys.
        guard let present = FileIdentity(path: target), present == status, present.size == status.size,
            present.modifiedAt == status.modifiedAt
        else { throw FileError(keyFile: path, "was changed by another program meanwhile: run the command again") }
        try addingPath(path) { () throws(SystemCallError) in
            try OpenFile.replace(path: target, content: content, permissions: status.permissions)
        }
    }

    /// Returns the content of the file for a ring.
    private static func content(
        of document: KeyRingDocument,
        wrapping: (any KeyRingWrapping)?,
        path: String
    ) throws(FileError) -> Secret {
        let text = document.text
        guard text.count <= maximumSize else { throw tooLarge(path) }
        guard let wrapping else { return text }
        let content = try wrappedContent(of: document, wrapping: wrapping, path: path)
        guard content.count <= maximumWrappedSize else { throw tooLarge(path, limit: maximumWrappedSize) }
        return content
    }

    /// Opens the file and waits for its lock, and retries if another process has replaced the file since it was opened.
    private static func openLocked(_ target: String, namedBy path: String) throws(FileError) -> OpenFile {
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
    private static func open(_ target: String, namedBy path: String) throws(FileError) -> OpenFile {
        try addingPath(path) { () throws(SystemCallError) in
            try OpenFile(path: target, flags: O_RDONLY | O_NONBLOCK)
        }
    }

    private static func checkOwner(_ status: FileIdentity, isCredential: Bool, path: String) throws(FileError) {
        let user = geteuid()
        guard status.isRegular else {
            throw FileError(
                keyFile: path,
                "is not a regular file: give the path of a file that `refresh-worker keys generate` made"
            )
        }
        guard status.owner == user || (isCredential && status.owner == 0) else {
            let (owner, running) = (FileOwner.name(ofUser: status.owner), FileOwner.nameOfCurrentUser)
            // A file that root takes over locks out the service.
            let takeOver = user == 0 ? nil : FileOwner(path)?.advice()
            let advice = takeOver ?? "run the command as the owner: runuser -u \(owner) -- refresh-worker …"
            throw FileError(keyFile: path, "belongs to user \(owner), but user \(running) is running: \(advice)")
        }
    }

    private static func checkMode(_ status: FileIdentity, isCredential: Bool, path: String) throws(FileError) {
        guard status.permissions & (isCredential ? 0o037 : 0o077) == 0 else {
            let digits = String(status.permissions, radix: 8)
            let mode = String(repeating: "0", count: max(0, 4 - digits.count)) + digits
            let advice = isCredential ? "run: chmod 600 \(path)" : FileOwner.advice(toProtect: path)
            throw FileError(keyFile: path, "is readable by others (mode \(mode)): \(advice)")
        }
    }

    private static func document(
        in file: borrowing OpenFile,
        wrapping: (any KeyRingWrapping)?,
        path: String
    ) throws(FileError) -> KeyRingDocument {
        let limit = wrapping == nil ? maximumSize : maximumWrappedSize
        let content: Secret?
        do throws(SystemCallError) {
            content = try file.read(limit: limit)
        } catch {
            throw FileError(keyFile: path, because: error)
        }
        guard let content else { throw tooLarge(path, limit: limit) }
        guard let wrapping else { return try KeyRingDocument(text: content, path: path) }
        return try document(printedBy: wrapping, for: content, path: path)
    }

    /// Runs calls on an existing file, and adds its path to their errors.
    private static func addingPath<Result: ~Copyable>(
        _ path: String,
        _ body: () throws(SystemCallError) -> Result
    ) throws(FileError) -> Result {
        do throws(SystemCallError) {
            return try body()
        } catch {
            switch error.code {
            case ENOENT, ENOTDIR:
                throw FileError(
                    keyFile: path,
                    "does not exist: restore it from its copy, because a new key ring cannot open stored tokens; only if "
                        + "none is stored yet, run: refresh-worker keys generate --key-file \(path)",
                    .missing
                )
            case EACCES:
                throw FileError(keyFile: path, "cannot be read\(FileOwner.advice(onDenied: path))")
            default: throw FileError(keyFile: path, because: error)
            }
        }
    }

    static func tooLarge(_ path: String, limit: Int = maximumSize) -> FileError {
        FileError(
            keyFile: path,
            "is larger than \(limit) bytes: it is not a key file, or has retired keys to remove"
        )
    }
}
