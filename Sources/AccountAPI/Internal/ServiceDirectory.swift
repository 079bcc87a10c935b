import Secrets
private import Synchronization

/// The services that are known now, found by the credential that they present.
///
/// Credentials are random and long, so that a plain hash keeps them: nobody can try enough of them. They are found by that
/// hash, which nobody can steer, so the time of a look-up tells nothing of those that exist.
package final class ServiceDirectory: Sendable {
    private let roster: Mutex<ServiceRoster>

    package init(_ roster: ServiceRoster) {
        self.roster = Mutex(roster)
    }

    /// Takes other services in place of these, as when their file is read again.
    package func replace(_ roster: ServiceRoster) {
        self.roster.withLock { $0 = roster }
    }

    /// The service that a credential belongs to.
    package func service(presenting credential: some StringProtocol) -> Service? {
        let hash = Digest.sha256(Array(credential.utf8))
        return roster.withLock { $0.services[hash] }
    }
}

/// What a services file says: each service by the SHA-256 of its credential.
package struct ServiceRoster: Hashable, Sendable {
    let services: [[UInt8]: Service]

    package var count: Int { services.count }

    init(services: [[UInt8]: Service]) {
        self.services = services
    }
}
