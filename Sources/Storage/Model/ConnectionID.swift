package import Base

/// The id of one of a user's connections to Google accounts.
///
/// It is unique among the connections of one user. The worker makes it, or an import brings it:
///
///     ConnectionID.default                    // the connection that a caller means who names none
///     ConnectionID.random(from: random)       // "c7f3kq2mwz"
///     ConnectionID("c7f3kq2mwz")              // as it comes in a path
///     ConnectionID("new")                     // nil: the word of a request for one more connection
package struct ConnectionID: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The connection that a caller means who names none.
    package static let `default` = ConnectionID(unchecked: "default")
    /// What a request says that wants one more connection.
    package static let wordForNew = "new"
    package static let rule = """
        must be 1 to \(maximumLength) letters, digits, dashes or underscores, and not new or google
        """
    /// Words that have a place of their own in a request or in a path.
    private static let reserved: Set<String> = [wordForNew, "google"]
    static let maximumLength = 32
    /// Digits that nobody confuses when reading an id aloud: without l, o, 0 and 1.
    private static let digits = Array("abcdefghijkmnpqrstuvwxyz23456789".utf8)
    /// The letter c and 45 random bits.
    private static let randomDigits = 10

    package let description: String

    private init(unchecked text: String) { description = text }

    /// Reads a stored id.
    init(stored text: String) { description = text }

    package init?(_ text: String) {
        let isPlain = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"): true
            default: false
            }
        }
        guard isPlain, (1...Self.maximumLength).contains(text.utf8.count), !Self.reserved.contains(text) else {
            return nil
        }
        description = text
    }

    package static func random(from source: any RandomSource) -> ConnectionID {
        var bits = source.nextBits()
        var text: [UInt8] = [UInt8(ascii: "c")]
        for _ in 1..<randomDigits {
            text.append(digits[Int(bits & 31)])
            bits >>= 5
        }
        return ConnectionID(unchecked: String(decoding: text, as: UTF8.self))
    }

    package var isDefault: Bool { self == .default }

    package static func < (left: ConnectionID, right: ConnectionID) -> Bool { left.description < right.description }
}
