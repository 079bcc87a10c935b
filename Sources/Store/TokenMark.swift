/// What a refresh token is known again by when Google names it in a security event: a hash, never a part of the token.
///
/// Google names a token by its first 16 characters or by its double SHA-512 hash
/// (https://developers.google.com/identity/protocols/risc#token-revoked).
package struct TokenMark: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case prefix
        case digest
    }

    package let kind: Kind
    package let bytes: [UInt8]

    /// Restores a stored mark.
    package init(kind: Kind, bytes: [UInt8]) {
        self.kind = kind
        self.bytes = bytes
    }
}

/// Both marks of one refresh token.
package struct TokenMarks: Hashable, Sendable {
    package let prefix: TokenMark
    package let digest: TokenMark

    package init(prefix: TokenMark, digest: TokenMark) {
        self.prefix = prefix
        self.digest = digest
    }
}
