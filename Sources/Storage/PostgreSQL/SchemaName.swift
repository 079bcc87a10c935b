/// The name of the PostgreSQL schema that has this program's tables.
///
/// Several schemas of one database are apart: each has its own workers, locks and notifications.
///
///     postgres://refresh_worker@db.example/grants?schema=grants_17
package struct SchemaName: Hashable, Sendable {
    /// The schema that every statement is written for, and that an address means if it names none.
    package static let standard = SchemaName(checked: standardText)

    private static let standardText = "refresh_worker"
    static let maximumLength = 63
    /// The rule for names, for errors: PostgreSQL shortens longer ones, and keeps those with `pg_` for itself.
    package static let rule = """
        1 to \(maximumLength) lower-case letters, digits and _, not beginning with a digit or pg_
        """
    private static let characters = Set("abcdefghijklmnopqrstuvwxyz0123456789_".utf8)

    package let text: String
    package let isStandard: Bool
    /// A number of this name, for what the schemas of a database must not share.
    private let hash: UInt64

    private init(checked text: String) {
        self.text = text
        isStandard = text == Self.standardText
        hash = StableHash.of(text)
    }

    /// Returns `nil` for a name that is not allowed by ``rule``.
    package init?(_ text: String) {
        guard (1...Self.maximumLength).contains(text.utf8.count), text.utf8.allSatisfy(Self.characters.contains),
            text.first?.isNumber == false, !text.hasPrefix("pg_")
        else { return nil }
        self.init(checked: text)
    }

    /// The name in a statement. It is quoted, because it could be a word of SQL such as `user`.
    package var identifier: String { isStandard ? text : "\"\(text)\"" }

    /// The channel for notifications of new due times.
    ///
    /// It has the hash instead of the name, because a channel has at most 63 bytes too.
    var channel: String {
        let standardChannel = "refresh_worker_due"
        return isStandard ? standardChannel : "\(standardChannel)_\(String(hash, radix: 16))"
    }

    /// Returns a statement for this schema. It was written for the standard one.
    ///
    /// A `search_path` would need no other text, but a pooler that lends a session for one transaction does not keep it.
    func translated(_ statement: String) -> String {
        guard !isStandard else { return statement }
        let standardName = Array(Self.standardText.utf8)
        let parts = Array(statement.utf8).split(separator: standardName, omittingEmptySubsequences: false)
        var result = Array(parts[0])
        for part in parts.dropFirst() {
            if let next = part.first, Self.characters.contains(next) {
                // A longer name, such as the channel's.
                result += standardName
            } else {
                result += Array(identifier.utf8)
            }
            result += part
        }
        return String(decoding: result, as: UTF8.self)
    }
}

/// The advisory locks of a schema. PostgreSQL itself keeps the locks of two databases apart.
extension SchemaName {
    /// Arbitrary numbers that no other program locks: "RfWk" with one, two and three.
    private static let standardLocks: UInt64 = 0x5266_576b_0000

    /// Held by the process that creates or changes the tables.
    var migrationLock: Int64 { lock(1) }
    /// Held by one transaction at a time that decides by the health of a client.
    var writingLock: Int64 { lock(2) }
    /// Held in shared mode by all writers, and exclusively by the process that marks the schema as moved.
    var moveLock: Int64 { lock(3) }

    private func lock(_ number: UInt64) -> Int64 {
        let first = isStandard ? Self.standardLocks : hash & ~0b11
        return Int64(bitPattern: first | number)
    }
}
