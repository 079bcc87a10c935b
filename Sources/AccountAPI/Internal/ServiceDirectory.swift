import Secrets
private import Synchronization

/// The current services, found by the credential that they present.
///
/// Credentials are long and random, so a plain hash protects them against guessing. They are found by that hash, which
/// a caller cannot choose, so the time of a look-up does not reveal existing ones.
package final class ServiceDirectory: Sendable {
    private let roster: Mutex<ServiceList>

    package init(_ roster: ServiceList) {
        self.roster = Mutex(roster)
    }

    /// Replaces the services, such as after reading their file again.
    package func replace(_ roster: ServiceList) {
        self.roster.withLock { $0 = roster }
    }

    /// Returns the service of a credential.
    package func service(presenting credential: some StringProtocol) -> Service? {
        let hash = Digest.sha256(Array(credential.utf8))
        return roster.withLock { $0.services[hash] }
    }
}

/// The content of a services file: each service by the SHA-256 of its credential.
package struct ServiceList: Hashable, Sendable {
    let services: [[UInt8]: Service]

    package var count: Int { services.count }

    init(services: [[UInt8]: Service]) {
        self.services = services
    }
}
