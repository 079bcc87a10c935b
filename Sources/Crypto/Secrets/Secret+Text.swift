private import Base

extension Secret {
    /// The lines of a secret text without line breaks and without empty lines.
    package var lines: [Secret] { allLines.filter { !$0.isEmpty } }

    /// All lines of a secret text without line breaks. Their indexes match the line numbers of an editor.
    package var allLines: [Secret] { parts(by: [UInt8(ascii: "\n")]).map { $0.dropping("\r") } }

    /// The words of a secret line, separated by blanks.
    package var words: [Secret] { parts(by: [UInt8(ascii: " "), UInt8(ascii: "\t")]).filter { !$0.isEmpty } }

    /// `true` if the text begins with `#`.
    package var isComment: Bool { withBytes { $0.byteCount > 0 && $0.byte(at: 0) == UInt8(ascii: "#") } }

    /// `true` if every byte is a visible ASCII character.
    package var isVisibleASCII: Bool {
        withBytes { $0.isVisibleASCII }
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

    func dropping(_ suffix: String) -> Secret {
        guard hasSuffix(suffix) else { return self }
        return withBytes { Secret(copying: $0.extracting(0..<($0.byteCount - suffix.utf8.count))) }
    }
}
