package import Base
private import Glibc

extension Secret {
    /// Reads a secret from a file, without the newline that editors and `echo` add at the end.
    ///
    /// The file can be a pipe. The call then blocks until the writer closes it.
    package static func read(file path: String, limit: Int = 65536) throws(FileError) -> Secret {
        try read(from: path, limit: limit) { () throws(SystemCallError) in
            try OpenFile(path: path, flags: O_RDONLY).read(limit: limit)
        }
    }

    /// Reads a secret to the end of an open descriptor, such as standard input.
    ///
    /// The descriptor stays open.
    ///
    /// Blocks until the writer closes its end.
    package static func read(descriptor: Int32, limit: Int = 65536) throws(FileError) -> Secret {
        let source = descriptor == STDIN_FILENO ? "standard input" : "descriptor \(descriptor)"
        return try read(from: source, limit: limit) { () throws(SystemCallError) in
            try OpenFile.read(descriptor: descriptor, limit: limit)
        }
    }

    private static func read(
        from source: String,
        limit: Int,
        _ content: () throws(SystemCallError) -> Secret?
    ) throws(FileError) -> Secret {
        let whole: Secret?
        do throws(SystemCallError) {
            whole = try content()
        } catch {
            throw FileError(unreadable: source, error)
        }
        guard let whole else {
            throw FileError("\(source) is longer than the \(limit) bytes that a secret can have")
        }
        return whole.hasSuffix("\n") ? whole.dropping("\n").dropping("\r") : whole
    }
}

extension Secret {
    /// The lines of a secret text without line breaks and without empty lines.
    package var lines: [Secret] { allLines.filter { !$0.isEmpty } }

    /// All lines of a secret text without line breaks.
    ///
    /// Their indexes match the line numbers of an editor.
    package var allLines: [Secret] { parts(by: [UInt8(ascii: "\n")]).map { $0.dropping("\r") } }

    /// The words of a secret line, separated by blanks.
    package var words: [Secret] { parts(by: [UInt8(ascii: " "), UInt8(ascii: "\t")]).filter { !$0.isEmpty } }

    /// `true` if the text begins with `#`.
    package var isComment: Bool { withBytes { $0.byteCount > 0 && $0.byte(at: 0) == UInt8(ascii: "#") } }

    /// `true` if every byte is a visible ASCII character.
    package var isVisibleASCII: Bool {
        withBytes { span in (0..<span.byteCount).allSatisfy { (0x21...0x7e).contains(span.byte(at: $0)) } }
    }

    /// `true` if the text ends with a string, which is not secret.
    package func hasSuffix(_ suffix: String) -> Bool {
        let suffix = Array(suffix.utf8)
        return withBytes { span in
            let start = span.byteCount - suffix.count
            return start >= 0 && suffix.indices.allSatisfy { span.byte(at: start + $0) == suffix[$0] }
        }
    }

    /// Returns the text after a prefix, which is not secret, or `nil` if it does not begin with it.
    package func suffix(after prefix: String) -> Secret? {
        let prefix = Array(prefix.utf8)
        return withBytes { span in
            guard span.byteCount >= prefix.count, prefix.indices.allSatisfy({ span.byte(at: $0) == prefix[$0] }) else {
                return nil
            }
            return Secret(copying: span.extracting(droppingFirst: prefix.count))
        }
    }

    private func parts(by separators: [UInt8]) -> [Secret] {
        withBytes { span in
            var parts: [Secret] = []
            var start = 0
            for offset in 0...span.byteCount {
                guard offset == span.byteCount || separators.contains(span.byte(at: offset)) else { continue }
                parts.append(Secret(copying: span.extracting(start..<offset)))
                start = offset + 1
            }
            return parts
        }
    }

    private func dropping(_ suffix: String) -> Secret {
        guard hasSuffix(suffix) else { return self }
        return withBytes { Secret(copying: $0.extracting(0..<($0.byteCount - suffix.utf8.count))) }
    }
}

extension Secret {
    /// Reads a whole file that only its owner can change and at most its group can read.
    package static func read(privateFile path: String, limit: Int = 65536) throws(FileError) -> Secret {
        let status: FileIdentity
        let content: Secret?
        do throws(SystemCallError) {
            // Non-blocking, because the path can be a pipe.
            let file = try OpenFile(path: path, flags: O_RDONLY | O_NONBLOCK)
            status = try file.status()
            content = status.isRegular ? try file.read(limit: limit) : nil
        } catch {
            throw FileError(unreadable: path, error)
        }
        guard status.isRegular else { throw FileError("\(path) is not a regular file") }
        guard status.permissions & 0o027 == 0 else {
            let mode = String(status.permissions, radix: 8)
            throw FileError("\(path) is open to others (mode \(mode)): run: chmod 600 \(path)")
        }
        guard let content else { throw FileError("\(path) is longer than \(limit) bytes") }
        return content
    }
}

extension FileError {
    fileprivate init(unreadable source: String, _ error: SystemCallError) {
        self.init("\(source) cannot be read: \(error)", .system(error.code))
    }
}
