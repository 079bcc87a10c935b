private import Glibc

/// Why a file that holds a secret is not taken.
package struct PrivateFileError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Reason: Hashable, Sendable {
        case notRegular
        case tooLong(limit: Int)
        /// Strangers may read it, or the group may write to it.
        case open(permissions: UInt32)
        case system(SystemCallError)
    }

    package let path: String
    package let reason: Reason

    package var description: String {
        switch reason {
        case .notRegular: "\(path) is no regular file"
        case .tooLong(let limit): "\(path) is longer than \(limit) bytes"
        case .open(let permissions):
            "\(path) is open to others (mode \(String(permissions, radix: 8))): run: chmod 600 \(path)"
        case .system(let error): "\(path) cannot be read: \(error)"
        }
    }
}

extension Secret {
    /// Reads a file whole that only its owner may change, and at most its group may read.
    package static func read(privateFile path: String, limit: Int = 65536) throws(PrivateFileError) -> Secret {
        let status: OpenFile.Status
        let content: Secret?
        do throws(SystemCallError) {
            // Not blocking, because the name may be a pipe's.
            let file = try OpenFile(path: path, flags: O_RDONLY | O_NONBLOCK)
            status = try file.status()
            content = status.isRegular ? try file.read(limit: limit) : nil
        } catch {
            throw PrivateFileError(path: path, reason: .system(error))
        }
        guard status.isRegular else { throw PrivateFileError(path: path, reason: .notRegular) }
        guard status.permissions & 0o027 == 0 else {
            throw PrivateFileError(path: path, reason: .open(permissions: status.permissions))
        }
        guard let content else { throw PrivateFileError(path: path, reason: .tooLong(limit: limit)) }
        return content
    }

    /// The lines of a secret text, without their line breaks; empty ones are left out.
    package var lines: [Secret] {
        withBytes { span in
            var lines: [Secret] = []
            var start = 0
            for offset in 0...span.byteCount {
                guard offset == span.byteCount || span.byte(at: offset) == UInt8(ascii: "\n") else { continue }
                var end = offset
                if end > start, span.byte(at: end - 1) == UInt8(ascii: "\r") { end -= 1 }
                if end > start { lines.append(Secret(copying: span.extracting(start..<end))) }
                start = offset + 1
            }
            return lines
        }
    }
}
