import Base
import Crypto
import GoogleOAuth
import Synchronization

/// The secrets of confidential clients, by client id.
///
/// A reload of the configuration replaces them.
final class ClientSecrets: Sendable {
    private let entries: Mutex<[String: ClientSecret]>

    init(_ secrets: [String: Secret]) {
        entries = Mutex(Self.entries(of: secrets))
    }

    subscript(clientID: String) -> ClientSecret? { entries.withLock { $0[clientID] } }

    func replace(with secrets: [String: Secret]) {
        let replacement = Self.entries(of: secrets)
        entries.withLock { $0 = replacement }
    }

    private static func entries(of secrets: [String: Secret]) -> [String: ClientSecret] {
        Dictionary(
            uniqueKeysWithValues: secrets.map { id, secret in
                (
                    id,
                    ClientSecret(secret: secret, fingerprint: ClientSecretFingerprint(of: secret, clientID: id))
                )
            }
        )
    }
}

/// The secret of a confidential client.
struct ClientSecret: Sendable {
    let secret: Secret
    let fingerprint: ClientSecretFingerprint
}

/// A digest of a client secret, by which workers see if they send the same one.
///
/// Each worker has its own secrets, and the answers for a client id count for all workers. So a refusal of a request
/// with another secret than the last success never ends a grant.
///
/// Four bytes are enough for that, and too few to find the secret: Google's have more than 100 random bits.
struct ClientSecretFingerprint: Hashable, Sendable {
    /// The fingerprint of a public client, which does not have a secret.
    static let none = ClientSecretFingerprint(rawValue: 0)

    let rawValue: UInt32
}

extension ClientSecretFingerprint {
    init(of secret: Secret, clientID: String) {
        let digest = Digest.sha256(Array("\(clientID):\(secret.reveal())".utf8))
        self.init(rawValue: digest.prefix(4).reduce(0) { $0 << 8 | UInt32($1) })
    }

    /// Reads a stored fingerprint.
    ///
    /// A missing one stands for a public client.
    init(stored value: JSONValue?) {
        self = value?.integer.flatMap { UInt32(exactly: $0) }.map(ClientSecretFingerprint.init(rawValue:)) ?? .none
    }
}
