package import Base
package import Crypto

/// Seals and opens tokens, each bound to the id of its grant or session and to its column.
///
///     let sealed = try vault.seal(refreshToken: token, for: grant.id)
///     let opened = try vault.openRefreshToken(of: grant)
package struct TokenVault: Sendable {
    package let ring: ReloadableKeyRing

    package init(ring: ReloadableKeyRing) {
        self.ring = ring
    }

    /// Throws while the ring lacks a key with which other workers seal: new tokens must not be sealed with an older
    /// one.
    package func checkMaySeal() throws(StoreError) {
        if let reason = ring.standbyReason { throw StoreError(.refused, reason) }
    }

    /// Seals a refresh token, with the time of its consent and the end of its own lifetime if these are known.
    package func seal(
        refreshToken: Secret,
        for id: GrantID,
        expiresAt: Timestamp? = nil,
        consentedAt: Timestamp? = nil
    ) throws(CryptoError) -> Grant.RefreshToken {
        Grant.RefreshToken(
            sealed: try ring.current.seal(refreshToken, for: .refreshToken(of: id)),
            marks: TokenMarks(of: refreshToken),
            expiresAt: expiresAt,
            consentedAt: consentedAt
        )
    }

    package func seal(accessToken: Secret, for id: GrantID) throws(CryptoError) -> SealedSecret {
        try ring.current.seal(accessToken, for: .accessToken(of: id))
    }

    package func openRefreshToken(of grant: Grant) throws(CryptoError) -> Secret? {
        guard let token = grant.refreshToken else { return nil }
        return try ring.open(token.sealed, for: .refreshToken(of: grant.id))
    }

    package func openAccessToken(of grant: Grant) throws(CryptoError) -> Secret? {
        guard let token = grant.accessToken else { return nil }
        return try ring.open(token.sealed, for: .accessToken(of: grant.id))
    }

    package func seal(sessionToken: Secret, for id: SessionID) throws(CryptoError) -> SealedSecret {
        try ring.current.seal(sessionToken, for: .successor(of: id))
    }

    /// Opens the token that replaced the session's previous one.
    package func openSuccessor(_ sealed: SealedSecret, of id: SessionID) throws(CryptoError) -> Secret {
        try ring.open(sealed, for: .successor(of: id))
    }

    /// `true` if the refresh token that the app brings differs from the stored one, or belongs to another client.
    package func isOther(refreshToken brought: Secret?, ofClient clientID: String, than stored: Grant) -> Bool {
        guard let brought else { return false }
        guard stored.clientID == clientID else { return true }
        switch Result(catching: { () throws(CryptoError) in try openRefreshToken(of: stored) }) {
        case .success(let known): return known != brought
        // A stored token that no key opens is useless, so the new one replaces it.
        case .failure: return true
        }
    }

    /// Seals a whole result for the spill file.
    package func seal(spilledResult: Secret) throws(CryptoError) -> SealedSecret {
        try ring.current.seal(spilledResult, for: .spilledResult)
    }

    package func open(spilledResult sealed: SealedSecret) throws(CryptoError) -> Secret {
        try ring.open(sealed, for: .spilledResult)
    }
}

extension SealContext {
    /// Results are outside the tables, and contain the names of their grants.
    fileprivate static let spilledResult = SealContext(owner: [], column: "spilled_result")

    static func refreshToken(of id: GrantID) -> SealContext { SealContext(owner: id.rawValue, column: "refresh_token") }

    static func accessToken(of id: GrantID) -> SealContext { SealContext(owner: id.rawValue, column: "access_token") }

    fileprivate static func successor(of id: SessionID) -> SealContext {
        SealContext(owner: id.bytes, column: "session_successor")
    }
}

/// Digests of the access tokens from refreshes of a grant that might still be valid, the latest last.
///
/// The worker gives these tokens to services. To Google they prove the identity of the user, so a service could sign in
/// as the user with one: a sign-in compares the presented token with these digests.
package struct IssuedTokens: Hashable, Sendable {
    /// More than can be valid at once: a caller that rejects every token gets about fifty in the life of one
    /// (`DuePolicy` and `VendDecision` slow it down), and must not push the first one off the list.
    static let capacity = 128
    package static let digestLength = 16
    /// A digest, and the time at which its token expires in eight bytes, the highest byte first.
    private static let entryLength = digestLength + 8

    /// The stored form, since most refreshes read the list and none needs more of it than the times.
    private var entries: [UInt8] = []

    init() {}

    /// Takes the form that ``bytes`` returns. `nil` stands for an empty list.
    init(bytes: [UInt8]?) {
        guard let bytes else { return }
        entries = bytes.count % Self.entryLength == 0 ? bytes : bytes.dropLast(bytes.count % Self.entryLength)
    }

    /// The stored form of the list, or `nil` if it is empty.
    var bytes: [UInt8]? { entries.isEmpty ? nil : entries }

    /// Returns the digest of an access token: half of its SHA-256, which identifies the token without revealing it.
    package static func digest(of token: Secret) -> [UInt8] {
        token.withBytes { span in Array(Digest.sha256(span).prefix(digestLength)) }
    }

    /// The instant at which the last of them expires, or `nil` if there are none.
    var end: Timestamp? { starts.map(expiry).max() }

    package func contains(_ digest: [UInt8]) -> Bool { starts.contains { self.digest(at: $0).elementsEqual(digest) } }

    /// Adds a token, and drops expired ones.
    mutating func insert(_ digest: [UInt8], until expiresAt: Timestamp, at now: Timestamp) {
        precondition(digest.count == Self.digestLength)
        let kept = starts.filter { expiry(at: $0) > now && !self.digest(at: $0).elementsEqual(digest) }
            .suffix(Self.capacity - 1)
        var next: [UInt8] = []
        next.reserveCapacity((kept.count + 1) * Self.entryLength)
        for start in kept { next.append(contentsOf: entries[start..<start + Self.entryLength]) }
        next.append(contentsOf: digest)
        next.append(bigEndian: expiresAt.milliseconds)
        entries = next
    }

    /// The positions at which entries begin.
    private var starts: StrideTo<Int> { stride(from: 0, to: entries.count, by: Self.entryLength) }

    private func digest(at start: Int) -> ArraySlice<UInt8> { entries[start..<start + Self.digestLength] }

    private func expiry(at start: Int) -> Timestamp {
        Timestamp(milliseconds: entries[start + Self.digestLength..<start + Self.entryLength].bigEndian)
    }
}

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

    /// The number of characters of a token that Google sends.
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

/// Whole numbers as bytes, the highest first.
extension [UInt8] {
    init(bigEndian value: some FixedWidthInteger) {
        self = []
        append(bigEndian: value)
    }

    mutating func append<Value: FixedWidthInteger>(bigEndian value: Value) {
        for shift in stride(from: Value.bitWidth - 8, through: 0, by: -8) {
            append(UInt8(truncatingIfNeeded: value &>> Value(truncatingIfNeeded: shift)))
        }
    }
}

extension Sequence<UInt8> {
    /// The whole number that at most eight bytes are.
    var bigEndian: Int64 { reduce(0) { $0 << 8 | Int64($1) } }
}
