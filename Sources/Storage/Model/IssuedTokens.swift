import Base
package import Crypto

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
