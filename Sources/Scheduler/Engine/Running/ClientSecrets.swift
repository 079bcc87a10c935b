import Crypto
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
