import Secrets
import Synchronization

/// The secrets of confidential clients, by client id; a reload of the configuration replaces them.
final class ClientSecrets: Sendable {
    private let secrets: Mutex<[String: Secret]>

    init(_ secrets: [String: Secret]) {
        self.secrets = Mutex(secrets)
    }

    subscript(clientID: String) -> Secret? { secrets.withLock { $0[clientID] } }

    func replace(with secrets: [String: Secret]) {
        self.secrets.withLock { $0 = secrets }
    }
}
