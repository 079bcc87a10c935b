import Crypto
import HTTPServer
private import Synchronization

/// The current services by credential.
///
/// Credentials are long and random, so a plain hash protects them against guessing. They are found by that hash, which
/// a caller cannot choose, so the time of a look-up does not reveal existing ones. With HTTP Basic a service is found
/// by its name, which is not secret.
package final class ServiceDirectory: Sendable {
    private let list: Mutex<ServiceList>

    package init(_ services: ServiceList) {
        list = Mutex(services)
    }

    /// Replaces the services, for example after a reload.
    package func replace(_ services: ServiceList) {
        list.withLock { $0 = services }
    }

    /// Returns the service of a credential.
    package func service(presenting credential: some StringProtocol) -> Service? {
        let hash = Digest.sha256(Array(credential.utf8))
        return list.withLock { $0.services[hash] }
    }

    /// Returns the service with this name if the credential is its own.
    package func service(named name: String, presenting credential: String) -> Service? {
        let hash = Digest.sha256(Array(credential.utf8))
        guard let service = list.withLock({ $0.service(named: name) }) else { return nil }
        return ConstantTime.areEqual(service.credentialHash, hash) ? service : nil
    }

    /// Returns the service that a request authenticates: by its credential alone, or with its name by HTTP Basic, as a
    /// browser does.
    func service(authenticating request: ServerRequest) -> Service? {
        if let credential = BearerToken(of: request).text { return service(presenting: credential) }
        guard case .present(let name, let password) = BasicCredentials(of: request) else { return nil }
        return service(named: name, presenting: password)
    }
}
