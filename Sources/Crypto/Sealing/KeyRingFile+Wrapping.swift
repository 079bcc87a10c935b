package import Base
private import Glibc

/// A key ring's file that is not plain text: a ``KeyRingWrapping`` reads and writes its content.
extension KeyRingFile {
    /// Wrapped keys are longer than plain ones, by a third if the file is Base64.
    static let maximumWrappedSize = 2 * maximumSize

    /// Reads the ring. A missing file is no error, because the program might get the ring from somewhere else.
    package static func load(path: String, wrapping: any KeyRingWrapping) throws(FileError) -> KeyRing {
        try document(printedBy: wrapping, for: try wrappedContent(path: path), path: path).ring
    }

    /// Returns `true` if a file that should be wrapped holds a ring in plain text.
    package static func isPlain(path: String) throws(FileError) -> Bool {
        guard let content = try wrappedContent(path: path) else { return false }
        return parse(content, path: path) != nil
    }

    /// Wraps the ring with one more key, and opens the result again. The file stays as it is.
    ///
    /// The added key shows that the program reads its input: one that opens the file instead would print the ring
    /// without it.
    package static func checkWrapping(path: String, wrapping: any KeyRingWrapping) throws(FileError) {
        var document = try document(printedBy: wrapping, for: try wrappedContent(path: path), path: path)
        let trial = try newKey(path: path) { () throws(CryptoError) in try .random(isPending: true) }
        try document.append(trial)
        _ = try wrappedContent(of: document, wrapping: wrapping, path: path)
    }

    /// Wraps a ring for its file, and checks that the result opens to the same ring.
    ///
    /// With a content that does not open, every stored token would be lost.
    static func wrappedContent(
        of document: KeyRingDocument,
        wrapping: any KeyRingWrapping,
        path: String
    ) throws(FileError) -> Secret {
        let content = try wrapping.wrap(document.text)
        let opened: KeyRing
        do throws(FileError) {
            opened = try self.document(printedBy: wrapping, for: content, path: path).ring
        } catch {
            let problem = "was not changed, because its new content cannot be opened: \(error)"
            throw FileError(keyFile: path, problem, error.kind)
        }
        guard opened.isSame(as: document.ring) else {
            throw FileError(
                keyFile: path,
                """
                was not changed: what --key-wrap-command printed does not open to the same keys. \
                Does --key-command read the content of the file from its standard input, and no file?
                """
            )
        }
        return content
    }

    /// Opens a content, which is `nil` if there is no file.
    static func document(
        printedBy wrapping: any KeyRingWrapping,
        for content: Secret?,
        path: String
    ) throws(FileError) -> KeyRingDocument {
        let printed = try wrapping.unwrap(content)
        let place = content == nil ? "\(path), which does not exist," : path
        do throws(FileError) {
            return try KeyRingDocument(text: printed, path: path)
        } catch {
            // aws kms decrypt and vault print Base64.
            if let text = Base64.decode(printed.droppingLineEnds), let document = parse(text, path: path) {
                return document
            }
            throw FileError(
                keyFile: place,
                "was opened by --key-command, but what that printed is no key ring: \(error)"
            )
        }
    }

    private static func parse(_ text: Secret, path: String) -> KeyRingDocument? {
        do throws(FileError) {
            return try KeyRingDocument(text: text, path: path)
        } catch {
            return nil
        }
    }

    /// Returns what the file holds, or `nil` if it does not exist.
    ///
    /// Other users can read it, but not change it: they could let the worker seal with a key of theirs.
    private static func wrappedContent(path: String) throws(FileError) -> Secret? {
        let status: FileIdentity
        let content: Secret?
        do throws(SystemCallError) {
            let file = try OpenFile(path: path, flags: O_RDONLY | O_NONBLOCK)
            status = try file.status()
            content = status.isRegular ? try file.read(limit: maximumWrappedSize) : nil
        } catch {
            guard error.code != ENOENT else { return nil }
            let advice = error.code == EACCES ? FileOwner.advice(onDenied: path) : ""
            throw FileError(keyFile: path, "cannot be used: \(error)\(advice)", .system(error.code))
        }
        try checkWrapped(status, path: path)
        guard status.owner == geteuid() || status.owner == 0 else {
            let owner = FileOwner.name(ofUser: status.owner)
            throw FileError(keyFile: path, "belongs to user \(owner), who could put other keys there")
        }
        guard let content else { throw tooLarge(path, limit: maximumWrappedSize) }
        return content
    }

    static func checkWrapped(_ status: FileIdentity, path: String) throws(FileError) {
        guard status.isRegular else { throw FileError(keyFile: path, "is not a regular file") }
        guard status.permissions & 0o022 == 0 else {
            let mode = String(status.permissions, radix: 8)
            throw FileError(keyFile: path, "can be changed by others (mode \(mode)): run: chmod go-w \(path.shellWord)")
        }
    }
}

extension Secret {
    /// The text without the ends of lines after it.
    fileprivate var droppingLineEnds: Secret {
        var text = self
        while text.hasSuffix("\n") || text.hasSuffix("\r") { text = text.dropping("\n").dropping("\r") }
        return text
    }
}
