import Base
package import Crypto
import Synchronization

/// The secrets of confidential clients, by client id; a reload of the configuration replaces them.
final class ClientSecrets: Sendable {
    struct Entry: Sendable {
        let secret: Secret
        let fingerprint: ClientSecretFingerprint
    }

    private let entries: Mutex<[String: Entry]>

    init(_ secrets: [String: Secret]) {
        entries = Mutex(Self.entries(of: secrets))
    }

    subscript(clientID: String) -> Entry? { entries.withLock { $0[clientID] } }

    func replace(with secrets: [String: Secret]) {
        let replacement = Self.entries(of: secrets)
        entries.withLock { $0 = replacement }
    }

    private static func entries(of secrets: [String: Secret]) -> [String: Entry] {
        Dictionary(
            uniqueKeysWithValues: secrets.map { id, secret in
                (id, Entry(secret: secret, fingerprint: ClientSecretFingerprint(of: secret, clientID: id)))
            }
        )
    }
}

/// A digest of a client secret, by which workers see if they send the same one.
///
/// Four bytes are enough for that, and too few to find the secret: Google's have more than 100 random bits.
package struct ClientSecretFingerprint: Hashable, Sendable {
    /// The fingerprint of a public client, which does not have a secret.
    package static let none = ClientSecretFingerprint(rawValue: 0)

    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    package init(of secret: Secret, clientID: String) {
        let digest = Digest.sha256(Array("\(clientID):\(secret.reveal())".utf8))
        rawValue = digest.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// Reads a stored fingerprint; a missing one stands for a public client.
    init(stored value: JSONValue?) {
        self = value?.integer.flatMap { UInt32(exactly: $0) }.map(ClientSecretFingerprint.init(rawValue:)) ?? .none
    }
}
