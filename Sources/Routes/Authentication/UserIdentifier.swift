internal import Base

/// The id of a user in the claims of a token.
struct UserIdentifier {
    static let maxLength = 255

    let text: String

    /// Reads the user from `sub`, or from `user_id`, which PayPulse's login uses.
    init(_ claims: JSONValue) throws(AuthenticationRefusal) {
        let subject = try Self.identifier(claims["sub"])
        let user = try Self.identifier(claims["user_id"])
        // Compared by bytes, as the store compares ids.
        guard let userID = subject ?? user, user.map({ $0.utf8.elementsEqual(userID.utf8) }) ?? true else {
            throw .invalid
        }
        text = userID
    }

    /// Returns a user's id; `nil` if there is none.
    ///
    /// A number is refused: `42`, `42.0` and `"42"` could be one user for the worker, and two for the login that signed
    /// the token.
    private static func identifier(_ value: JSONValue?) throws(AuthenticationRefusal) -> String? {
        switch value {
        case nil, .null: return nil
        case .string(let text):
            guard isWellFormed(text) else { throw .invalid }
            return text
        default: throw .invalid
        }
    }

    static func isWellFormed(_ text: String) -> Bool {
        (1...maxLength).contains(text.utf8.count)
            && !text.unicodeScalars.contains { $0.properties.generalCategory == .control }
    }
}

extension UserIdentifier {
    /// Returns a new user's id: the text of a random UUID (RFC 9562, section 5.4).
    static func random(from source: any RandomSource) -> String {
        let high = source.nextBits() & ~0xf000 | 0x4000
        let low = source.nextBits() & ~(0b11 << 62) | (0b10 << 62)
        let digits = [high, low].map { word in
            let text = String(word, radix: 16)
            return String(repeating: "0", count: 16 - text.count) + text
        }.joined()
        var groups: [Substring] = []
        var rest = digits[...]
        for length in [8, 4, 4, 4, 12] {
            groups.append(rest.prefix(length))
            rest = rest.dropFirst(length)
        }
        return groups.joined(separator: "-")
    }
}
