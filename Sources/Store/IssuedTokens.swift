package import Clocks
package import Secrets

/// Digests of the access tokens from refreshes of a grant that may still be valid, the latest last.
///
/// The worker gives these tokens to services. To Google they prove the identity of the user, so a service could sign in
/// as the user with one: a sign-in compares the presented token with these digests.
package struct IssuedTokens: Hashable, Sendable {
    /// More than can be valid at once: a caller that rejects every token gets about fifty in the life of one
    /// (`DuePolicy` and `RenewalDecision` slow it down), and must not push the first one off the list.
    package static let capacity = 128
    private static let digestLength = 16

    private struct Entry: Hashable {
        var digest: [UInt8]
        var expiresAt: Timestamp
    }

    private var entries: [Entry] = []

    package init() {}

    /// Parses the form that ``bytes`` returns; `nil` stands for an empty list.
    package init(bytes: [UInt8]?) {
        let bytes = bytes ?? []
        let length = Self.digestLength + 8
        for start in stride(from: 0, through: bytes.count - length, by: length) {
            let end = start + Self.digestLength
            let time = bytes[end..<end + 8].reduce(0) { $0 << 8 | UInt64($1) }
            entries.append(
                Entry(
                    digest: Array(bytes[start..<end]),
                    expiresAt: Timestamp(milliseconds: Int64(bitPattern: time))
                )
            )
        }
    }

    /// The stored form of the list; `nil` if it is empty.
    package var bytes: [UInt8]? {
        guard !entries.isEmpty else { return nil }
        return entries.flatMap { entry in
            let time = UInt64(bitPattern: entry.expiresAt.milliseconds)
            return entry.digest
                + stride(from: 56 as UInt64, through: 0, by: -8).map { UInt8(truncatingIfNeeded: time >> $0) }
        }
    }

    /// Returns the digest of an access token: half of its SHA-256, which identifies the token without revealing it.
    package static func digest(of token: Secret) -> [UInt8] {
        token.withBytes { span in span.withUnsafeBytes { Array(Digest.sha256(Array($0)).prefix(digestLength)) } }
    }

    /// The instant at which the last of them expires; `nil` if there are none.
    var end: Timestamp? { entries.map(\.expiresAt).max() }

    package func contains(_ digest: [UInt8]) -> Bool { entries.contains { $0.digest == digest } }

    /// Adds a token, and drops expired ones.
    package mutating func insert(_ digest: [UInt8], until expiresAt: Timestamp, at now: Timestamp) {
        entries = entries.filter { $0.expiresAt > now && $0.digest != digest }.suffix(Self.capacity - 1)
        entries.append(Entry(digest: digest, expiresAt: expiresAt))
    }
}
