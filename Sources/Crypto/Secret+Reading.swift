private import Glibc

/// The reason why a secret could not be read.
package struct SecretReadError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Reason: Hashable, Sendable {
        case tooLong(limit: Int)
        case system(SystemCallError)
    }

    /// The source: a path, "standard input" or "descriptor 7".
    package let source: String
    package let reason: Reason

    package var description: String {
        switch reason {
        case .tooLong(let limit): "\(source) is longer than the \(limit) bytes that a secret may have"
        case .system(let error): "\(source) cannot be read: \(error)"
        }
    }
}

extension Secret {
    /// Reads a secret from a file, without the newline that editors and `echo` add at the end.
    ///
    /// The file may be a pipe; the call then blocks until the writer closes it.
    package static func read(file path: String, limit: Int = 65536) throws(SecretReadError) -> Secret {
        try read(from: path, limit: limit) { () throws(SystemCallError) in
            try OpenFile(path: path, flags: O_RDONLY).read(limit: limit)
        }
    }

    /// Reads a secret to the end of an open descriptor, such as standard input.
    ///
    /// The descriptor stays open.
    ///
    /// Blocks until the writer closes its end.
    package static func read(descriptor: Int32, limit: Int = 65536) throws(SecretReadError) -> Secret {
        let source = descriptor == STDIN_FILENO ? "standard input" : "descriptor \(descriptor)"
        return try read(from: source, limit: limit) { () throws(SystemCallError) in
            try OpenFile.read(descriptor: descriptor, limit: limit)
        }
    }

    private static func read(
        from source: String,
        limit: Int,
        _ content: () throws(SystemCallError) -> Secret?
    ) throws(SecretReadError) -> Secret {
        let whole: Secret?
        do throws(SystemCallError) {
            whole = try content()
        } catch {
            throw SecretReadError(source: source, reason: .system(error))
        }
        guard let whole else { throw SecretReadError(source: source, reason: .tooLong(limit: limit)) }
        return whole.withoutTrailingNewline()
    }

    private func withoutTrailingNewline() -> Secret {
        withBytes { span in
            var end = span.byteCount
            if end > 0, span.byte(at: end - 1) == UInt8(ascii: "\n") {
                end -= 1
                if end > 0, span.byte(at: end - 1) == UInt8(ascii: "\r") { end -= 1 }
            }
            return end == span.byteCount ? self : Secret(copying: span.extracting(0..<end))
        }
    }
}
