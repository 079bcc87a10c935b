import Base
package import Crypto

/// A hash by which Google names a refresh token in a security event.
///
/// It never reveals a part of the token.
///
/// Google names a token by its first 16 characters or by its double SHA-512 hash
/// (https://developers.google.com/identity/protocols/risc#supported_event_types).
package enum TokenMark: Hashable, Sendable {
    /// Names a token by its beginning.
    case prefix([UInt8])
    /// Names a token by its double hash.
    case digest([UInt8])

    /// Google sends so many characters of a token.
    fileprivate static let prefixLength = 16
    private static let digestLength = 64

    package var bytes: [UInt8] {
        switch self {
        case .prefix(let bytes), .digest(let bytes): bytes
        }
    }

    /// Creates the mark of the tokens that begin with the characters in an event, and returns `nil` if there are too
    /// few.
    package init?(prefix text: String) {
        guard text.utf8.count >= Self.prefixLength else { return nil }
        self.init(tokenBeginning: text.utf8.prefix(Self.prefixLength))
    }

    /// Creates the mark of the token whose double SHA-512 hash an event gives in standard or URL-safe Base64, and
    /// returns `nil` if the text is not such a hash.
    package init?(doubleHash text: String) {
        let unpadded = text.utf8.reversed().drop { $0 == UInt8(ascii: "=") }.reversed()
        guard
            text.utf8.count - unpadded.count <= 2,
            let hash = Base64URL.decode(ofAnyAlphabet: unpadded),
            hash.count == Self.digestLength
        else { return nil }
        self.init(doubleHash: hash)
    }

    fileprivate init(tokenBeginning characters: some Sequence<UInt8>) {
        self = .prefix(Digest.sha256(Array("prefix:".utf8) + characters))
    }

    fileprivate init(doubleHash hash: [UInt8]) {
        self = .digest(Digest.sha256(Array("digest:".utf8) + hash))
    }
}

/// Both marks of one refresh token.
package struct TokenMarks: Hashable, Sendable {
    package let prefix: TokenMark
    package let digest: TokenMark

    /// Restores stored marks, and returns `nil` if one is missing.
    package init?(prefix: [UInt8]?, digest: [UInt8]?) {
        guard let prefix, let digest else { return nil }
        self.prefix = .prefix(prefix)
        self.digest = .digest(digest)
    }

    package init(of token: Secret) {
        let bytes = token.withBytes { span in unsafe span.withUnsafeBytes { unsafe [UInt8]($0) } }
        prefix = TokenMark(tokenBeginning: bytes.prefix(TokenMark.prefixLength))
        digest = TokenMark(doubleHash: Digest.sha512(Digest.sha512(bytes)))
    }
}
