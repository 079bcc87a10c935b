package import Crypto

/// A hash by which Google names a refresh token in a security event; it never reveals a part of the token.
///
/// Google names a token by its first 16 characters or by its double SHA-512 hash
/// (https://developers.google.com/identity/protocols/risc#supported_event_types).
package struct TokenMark: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case prefix
        case digest
    }

    /// The number of characters of a token that Google sends.
    private static let prefixLength = 16
    private static let digestLength = 64

    package let kind: Kind
    package let bytes: [UInt8]

    /// Restores a stored mark.
    fileprivate init(kind: Kind, bytes: [UInt8]) {
        self.kind = kind
        self.bytes = bytes
    }

    /// Creates the mark of the tokens that begin with the characters in an event; `nil` if there are too few.
    package init?(prefix text: String) {
        guard text.utf8.count >= Self.prefixLength else { return nil }
        self.init(tokenBeginning: text.utf8.prefix(Self.prefixLength))
    }

    /// Creates the mark of the token whose double SHA-512 hash an event gives in standard or URL-safe Base64; `nil` if
    /// the text is not such a hash.
    package init?(doubleHash text: String) {
        let unpadded = text.utf8.reversed().drop { $0 == UInt8(ascii: "=") }.reversed()
        let safe = unpadded.map { byte in
            switch byte {
            case UInt8(ascii: "+"): UInt8(ascii: "-")
            case UInt8(ascii: "/"): UInt8(ascii: "_")
            default: byte
            }
        }
        guard
            text.utf8.count - unpadded.count <= 2,
            let hash = Base64URL.decode(String(decoding: safe, as: UTF8.self)),
            hash.count == Self.digestLength
        else { return nil }
        self.init(doubleHash: hash)
    }

    fileprivate init(prefixOf token: [UInt8]) {
        self.init(tokenBeginning: token.prefix(Self.prefixLength))
    }

    fileprivate init(digestOf token: [UInt8]) {
        self.init(doubleHash: Digest.sha512(Digest.sha512(token)))
    }

    private init(tokenBeginning characters: some Sequence<UInt8>) {
        self.init(kind: .prefix, bytes: Digest.sha256(Array("prefix:".utf8) + characters))
    }

    private init(doubleHash hash: [UInt8]) {
        self.init(kind: .digest, bytes: Digest.sha256(Array("digest:".utf8) + hash))
    }
}

/// Both marks of one refresh token.
package struct TokenMarks: Hashable, Sendable {
    package let prefix: TokenMark
    package let digest: TokenMark

    /// Restores stored marks; `nil` if one is missing.
    package init?(prefix: [UInt8]?, digest: [UInt8]?) {
        guard let prefix, let digest else { return nil }
        self.prefix = TokenMark(kind: .prefix, bytes: prefix)
        self.digest = TokenMark(kind: .digest, bytes: digest)
    }

    package init(of token: Secret) {
        let bytes = token.withBytes { span in unsafe span.withUnsafeBytes { unsafe [UInt8]($0) } }
        prefix = TokenMark(prefixOf: bytes)
        digest = TokenMark(digestOf: bytes)
    }
}
